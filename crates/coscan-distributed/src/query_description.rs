//! What workers are told of a query besides its plan and its settings.

/// What workers are told of a query besides its plan and its settings. It travels with each task of the query.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct QueryDescription {
    /// The coordinator's id of the query.
    #[prost(string, optional, tag = "1")]
    pub id: Option<String>,
    /// The user who sent it.
    #[prost(string, tag = "2")]
    pub user: String,
    /// The most bytes that its operators may hold on a worker, if the session limits them.
    #[prost(uint64, optional, tag = "3")]
    pub memory_bytes_max: Option<u64>,
    /// Whether its aggregates collect values, such as `array_agg`.
    #[prost(bool, tag = "4")]
    pub collects_values: bool,
}
