//! Structures of which the tests make schemas; nothing compiles them.

/// A row.
#[derive(Serialize)]
struct Row<'a> {
    state: Cow<'static, str>,
    /// Of the newest round; `None`: none yet.
    rate_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip)]
    hidden: Instant,
    exit: Option<ExitRow>,
    why: ExitReason,
    cells: Vec<(f64, f64)>,
    values: Named<Value>,
    #[serde(flatten)]
    lost: Lost,
    within: Within,
}

#[derive(Serialize)]
struct Lost {
    lost_events: u64,
}

#[derive(Serialize)]
struct Within {
    port: u16,
}

struct Odd {
    table: HashMap<u8, u8>,
}

struct Renamed {
    #[serde(rename = "other")]
    name: String,
}
