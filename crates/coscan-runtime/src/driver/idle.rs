//! The driver starts with a task that drops what is idle.

use std::sync::Arc;

use super::handle::Driver;
use crate::io_runtime::IoRuntime;
use crate::options::Options;
use crate::recorder::Recorder;

impl Driver {
    /// A driver, with a task that drops idle pages, values and footers as long as there is a driver.
    pub(crate) fn start(
        options: Options,
        io_runtime: IoRuntime,
        recorder: Option<Recorder>,
    ) -> Arc<Self> {
        let driver = Self::new(options, io_runtime, recorder);
        driver.drop_idle_regularly();
        driver
    }

    fn drop_idle_regularly(&self) {
        let (driver, idle_timeout) = (self.this.clone(), self.options.idle_timeout);
        self.runtime().spawn(async move {
            loop {
                tokio::time::sleep(idle_timeout).await;
                let Some(driver) = driver.upgrade() else { return };
                driver.command(|inner, now| inner.core.evict_idle(now));
                driver.extensions().give_back_idle();
                driver.open_files().forget_closed();
            }
        });
    }
}
