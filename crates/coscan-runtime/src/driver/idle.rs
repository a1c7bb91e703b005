//! What nobody has used for a while is given up, as long as there is a driver.

use std::sync::Arc;

use super::handle::Driver;
use crate::io_runtime::IoRuntime;
use crate::options::Options;
use crate::recorder::Recorder;

impl Driver {
    /// A driver, with a task that gives up what is idle.
    pub(crate) fn start(
        options: Options,
        io_runtime: IoRuntime,
        recorder: Option<Recorder>,
    ) -> Arc<Self> {
        let driver = Self::new(options, io_runtime, recorder);
        driver.give_up_idle_regularly();
        driver
    }

    fn give_up_idle_regularly(&self) {
        let (driver, keep_idle) = (self.this.clone(), self.options.keep_idle);
        self.runtime().spawn(async move {
            loop {
                tokio::time::sleep(keep_idle).await;
                let Some(driver) = driver.upgrade() else { return };
                driver.command(|inner, now| inner.core.evict_idle(now));
                driver.extensions().give_back_idle();
                driver.open_files().forget_closed();
            }
        });
    }
}
