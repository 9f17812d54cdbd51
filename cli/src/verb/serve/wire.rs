//! What the broker and the web part say to each other: frames of a length and a postcard.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::row::FlowSummary;
use crate::live::{Change, Cursor, History, Incident};

/// Bytes of a frame's length.
pub(super) const LENGTH: usize = 4;
/// The largest frame that the web part sends: a request.
pub(super) const REQUEST_MAX: usize = 64 << 10;
/// The largest that the broker sends: all flows.
pub(super) const MESSAGE_MAX: usize = 64 << 20;

/// What the broker says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum BrokerMessage {
    /// Flows that have changed, and those that are forgotten.
    Flows { rows: Vec<FlowSummary>, gone: Vec<u64>, lost: Lost },
    /// What is new of a flow that is followed.
    Detail(Box<Detail>),
    /// Attached algorithms and consumers, as JSON: `onramp status` without what takes a look into other processes.
    Attached(String),
    /// When that was last read, by the wall clock in microseconds.
    StatusRead(u64),
    /// Of the request of this number: JSON, or why not.
    Answer(u64, Result<String, Refusal>),
}

/// What telemetry could not report since the server began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lost {
    pub lost_events: u64,
    pub unobserved_us: u64,
}

/// What is new of a flow that is followed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Detail {
    pub flow: u64,
    /// Why not every ACK is reported, if that was requested.
    pub rounds_only: Option<String>,
    /// JSON: parameters, exports, and a picture of some.
    pub evidence: String,
    pub histories: Histories<Change>,
    /// Incidents since the last report.
    pub incidents: Vec<Incident>,
    /// JSON, where it has changed: what other algorithms would have done.
    pub shadow: Option<String>,
}

/// Of the beginning, of all of its life, and of the newest past.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Histories<T> {
    pub beginning: T,
    pub life: T,
    pub recent: Option<T>,
}

impl Histories<Cursor> {
    /// What is new of these histories to a client that knows them so far; it knows it then.
    pub fn advance(
        &mut self,
        beginning: &History,
        life: &History,
        recent: Option<&History>,
    ) -> Histories<Change> {
        let (beginning, at_beginning) = beginning.since(self.beginning);
        let (life, at_life) = life.since(self.life);
        let (recent, at_recent) = recent.map(|recent| recent.since(self.recent.unwrap_or_default())).unzip();
        *self = Self { beginning: at_beginning, life: at_life, recent: at_recent };
        Histories { beginning, life, recent }
    }
}

/// What the web part asks for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request {
    /// What this flow does; with every ACK, or as far as it is reported anyway.
    Follow { flow: u64, acks: bool },
    /// Not any more.
    Leave(u64),
    /// A change of parameters.
    Tune { number: u64, token: String, tuning: Tuning },
}

/// A change of parameters, as it comes over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tuning {
    /// Which algorithm's.
    pub algorithm: String,
    /// Which set's; the first one's.
    #[serde(default)]
    pub profile: Option<String>,
    /// As `name=value`.
    pub settings: Vec<String>,
    /// Only to say what would change.
    #[serde(default)]
    pub dry_run: bool,
}

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Refusal {
    /// This server changes nothing.
    ReadOnly,
    /// The token is missing or wrong.
    Token,
    /// Wrong usage.
    Usage(String),
    /// It failed.
    Failure(String),
}

/// A frame.
pub(super) fn encode(message: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
    encode_in(message, Vec::new())
}

/// A frame in the memory of a previous one: that of all flows has megabytes.
pub(super) fn encode_in(message: &impl Serialize, mut frame: Vec<u8>) -> Result<Vec<u8>, postcard::Error> {
    frame.clear();
    frame.resize(LENGTH, 0);
    let mut frame = postcard::to_extend(message, frame)?;
    let length = (frame.len() - LENGTH) as u32;
    frame[..LENGTH].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

/// The length of the frame that begins here; `None`: more than `most`.
pub(super) fn length(bytes: [u8; LENGTH], most: usize) -> Option<usize> {
    Some(u32::from_le_bytes(bytes) as usize).filter(|length| *length <= most)
}

/// What a frame says, without its length.
pub(super) fn decode<T: DeserializeOwned>(frame: &[u8]) -> Result<T, postcard::Error> {
    postcard::from_bytes(frame)
}

#[cfg(test)]
mod tests {
    use onramp_loader::ExitReason;
    use onramp_loader::abi::ExitRecord;
    use onramp_recording::rows::ExitRecordRow;

    use super::*;

    #[test]
    fn what_is_said_arrives() {
        let tuning = Tuning {
            algorithm: "search".into(),
            profile: None,
            settings: vec!["threshold_pct=30".into()],
            dry_run: true,
        };
        let said = Request::Tune { number: 7, token: "secret".into(), tuning: tuning.clone() };
        let frame = encode(&said).unwrap();
        let (head, body) = frame.split_at(LENGTH);
        assert_eq!(length(head.try_into().unwrap(), REQUEST_MAX), Some(body.len()));
        let Request::Tune { number: 7, tuning: received, .. } = decode(body).unwrap() else {
            panic!("{frame:?}")
        };
        assert_eq!(received, tuning);
        assert_eq!(length(u32::MAX.to_le_bytes(), REQUEST_MAX), None);
        assert!(decode::<Request>(&body[..5]).is_err());
    }

    #[test]
    fn an_exit_arrives_as_it_was_recorded() {
        let record = ExitRecord {
            at_us: u64::MAX,
            window: 640,
            reason: ExitReason::Ecn as u8,
            undone: 255,
            ..ExitRecord::default()
        };
        let exit = ExitRecordRow::new(&record);
        let frame = encode(&Some(exit.clone())).unwrap();
        assert_eq!(decode::<Option<ExitRecordRow>>(&frame[LENGTH..]).unwrap(), Some(exit));
    }

    #[test]
    fn bytes_changed_anywhere_are_a_request_or_refused() {
        let tuning = Tuning {
            algorithm: "search".into(),
            profile: Some("geo".into()),
            settings: vec!["threshold_pct=20".into(), "exit_action=hold".into()],
            dry_run: true,
        };
        let valid = [
            Request::Follow { flow: 7, acks: true },
            Request::Leave(u64::MAX),
            Request::Tune { number: 3, token: "0123456789abcdef".into(), tuning },
        ];
        let valid = valid.map(|request| encode(&request).unwrap()[LENGTH..].to_vec());
        let understood = std::cell::Cell::new(0);
        onramp_mutation::check(1, 20_000, onramp_mutation::bytes(valid.to_vec()), |bytes| {
            if let Ok(request) = decode::<Request>(&bytes) {
                understood.set(understood.get() + 1);
                let again: Request = decode(&encode(&request).unwrap()[LENGTH..]).unwrap();
                assert_eq!(format!("{again:?}"), format!("{request:?}"));
            }
            Ok(())
        });
        assert!(understood.get() > 4_000, "{}", understood.get());
    }
}
