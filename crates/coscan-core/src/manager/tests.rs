//! The cost of commands, as counted steps.

use crate::{
    ActiveBufferManager, ChunkIndex, Config, DeviceId, GroupIndex, Layout, Order, PolicyKind,
    ScanSpec, Time,
};

const STEP_CHUNKS: u32 = 64;
const STEPS: u32 = 50;

#[test]
fn a_step_of_a_registration_costs_no_more_the_later_it_comes() {
    for (policy, order) in [
        (PolicyKind::Relevance, Order::Any),
        (PolicyKind::Relevance, Order::InOrder),
        (PolicyKind::Predictive(Default::default()), Order::Any),
    ] {
        let mut layout = Layout::builder(1);
        for _ in 0..STEPS * STEP_CHUNKS {
            let page = layout.add_page(GroupIndex(0), 1);
            layout.add_chunk(1, vec![vec![page]]);
        }
        let mut manager = ActiveBufferManager::new(Config::default(), policy.build());
        let (table, _) = manager.register_layout(&layout.build(), DeviceId(0));
        let step =
            |step: u32| vec![ChunkIndex(step * STEP_CHUNKS)..ChunkIndex((step + 1) * STEP_CHUNKS)];
        let groups = vec![GroupIndex(0)];
        let spec = ScanSpec {
            table,
            groups,
            chunks: step(0),
            order,
            workers: 1,
            weight: 1,
            pages: None,
            computation: None,
        };
        let scan = manager.start_scan(Time(0), &spec).expect("the table has such chunks");
        for index in 1..STEPS {
            manager.state().scan(scan).expect("it runs").needed().take_visited();
            manager.extend_scan(Time(0), scan, &step(index)).expect("the table has such chunks");
            let needed = manager.state().scan(scan).expect("it runs").needed();
            let visited = needed.take_visited();
            assert_eq!(needed.len(), ((index + 1) * STEP_CHUNKS) as usize);
            assert!(visited <= STEP_CHUNKS as usize, "step {index} of {policy}: {visited} visits");
        }
    }
}
