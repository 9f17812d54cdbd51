//! Recordings that were opened in the page: in memory alone, a few of them, and only for who knows their name.

#[cfg(test)]
mod tests;

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::multipart::MultipartError;
use axum::extract::{FromRequest, Multipart, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use onramp_recording::rows::AckRow;
use onramp_recording::{Budget, Recording, Row as _};
use serde::Serialize;

use super::answer::{Problem, json};
use super::hub::Hub;
use crate::live::{Recorded, read, read_csv};
use crate::output::Output;
use crate::verb::serve::evidence::{Evidence, Shadow};
use crate::verb::serve::row::FlowSummary;
use crate::verb::serve::wire::{BrokerMessage, Detail, Histories, Lost};

/// All files of one, together.
pub(super) const BYTES_MAX: usize = 64 << 20;
const FILES_MAX: usize = 1_000;
/// Rows of all of its tables, and of one file, which is in memory at once; a recorder's have half of it.
const ROWS_MAX: usize = 4 << 20;
const FILE_ROWS_MAX: usize = 1 << 18;
/// Rows of all tables but that of acknowledgments: they are in memory together.
const EVENTS_MAX: usize = 1 << 19;
/// What the columns of a file unpack to: as many rows as a file may have, of any table.
const FILE_BYTES_MAX: u64 = 1 << 27;
/// For another recording to be read.
const READING_WAIT: Duration = Duration::from_secs(10);
const FLOWS_MAX: usize = 2_000;
/// Flows whose past can be looked at: those with the most bytes. Of more flows than FEW it is coarser.
const DETAILED_MAX: usize = 500;
const FEW: usize = 50;
const BUCKETS: usize = 160;
const BUCKETS_OF_FEW: usize = 500;
#[derive(Serialize)]
struct Opened {
    /// For `recording=` of other requests.
    recording: String,
    flows: usize,
    /// The only one, if there is no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<String>,
    problems: Vec<String>,
}

/// `POST /api/recordings`: the files of a recording, as a form sends them.
pub(super) async fn open(State(hub): State<Hub>, request: Request) -> Result<Response, Problem> {
    let refuse = |status, text: String| Problem::new(status, text);
    let (parts, body) = request.into_parts();
    let body = hub.recordings.bodies.collect(body, &parts.headers, BYTES_MAX).await?;
    let reading = tokio::time::timeout(READING_WAIT, hub.recordings.reading.clone().acquire_owned());
    let Ok(Ok(permit)) = reading.await else {
        let text = "another recording is being read: try again in a moment";
        return Err(refuse(StatusCode::SERVICE_UNAVAILABLE, text.into()));
    };
    let (body, room) = body.into_body();
    let files = files(Request::from_parts(parts, body)).await?;
    let budget = Budget { file_bytes: FILE_BYTES_MAX, ..Budget::default() };
    // A client that has gone needs no answer.
    let _cancel = CancelOnDrop(Arc::clone(&budget.cancelled));
    let read = tokio::task::spawn_blocking(move || {
        let read = recorded(files, budget).map(|recorded| (messages(&recorded), recorded.problems));
        drop((permit, room));
        read
    });
    let failed = |error: &dyn std::fmt::Display| refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    let read = read.await.map_err(|error| failed(&error))?;
    let ((message, flows), problems) = read.map_err(|text| refuse(StatusCode::BAD_REQUEST, text))?;
    let flow = match flows[..] {
        [only] => Some(only.to_string()),
        _ => None,
    };
    let recording = hub.recordings.keep(Hub::from_messages(message)).map_err(|error| failed(&error))?;
    Ok(json(&Opened { recording, flows: flows.len(), flow, problems }))
}

/// The files of a form.
async fn files(request: Request) -> Result<Vec<(PathBuf, Vec<u8>)>, Problem> {
    let form = Multipart::from_request(request, &()).await;
    let mut form = form.map_err(|rejection| refused(rejection.status(), &rejection.body_text()))?;
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    let wrong = |error: MultipartError| refused(error.status(), &error.body_text());
    while let Some(field) = form.next_field().await.map_err(wrong)? {
        let name = field.file_name().unwrap_or("without a name").to_owned();
        files.push((name.into(), field.bytes().await.map_err(wrong)?.into()));
        if files.len() > FILES_MAX {
            let text = format!("these are more than {FILES_MAX} files");
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
    }
    Ok(files)
}

/// What is no form, with what to send instead; without the period of others' sentences.
fn refused(status: StatusCode, reason: &str) -> Problem {
    let reason = reason.trim_end_matches('.');
    Problem::new(status, format!("this is no form with files ({reason}): {AS_A_FORM}"))
}
/// How a recording is sent.
const AS_A_FORM: &str = "send them as multipart/form-data, as `curl -F file=@acks.csv` does";

/// Reading ends when this goes.
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A text that ends when it is not wanted any more.
struct While<'a>(&'a [u8], &'a AtomicBool);

impl Read for While<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.1.load(Ordering::Relaxed) {
            return Err(std::io::Error::other("reading was cancelled"));
        }
        self.0.read(buffer)
    }
}

/// What the files hold, or what is wrong with them.
fn recorded(files: Vec<(PathBuf, Vec<u8>)>, budget: Budget) -> Result<Recorded, String> {
    // Alone it is taken for text, whatever it is called, so that what it is instead is said.
    let is_csv = |(path, bytes): &(PathBuf, Vec<u8>)| {
        !bytes.starts_with(b"PAR1") && path.extension().is_none_or(|extension| extension != "parquet")
    };
    let buckets = |flows: usize| if flows > FEW { BUCKETS } else { BUCKETS_OF_FEW };
    let recorded = match &files[..] {
        [] => {
            return Err(
                "no file was sent: send the .parquet files of a recording, or acknowledgments as .csv".into(),
            );
        }
        [one] if is_csv(one) => read_csv(While(&one.1, &budget.cancelled), FLOWS_MAX, BUCKETS)
            .map_err(|reason| format!("{}: {reason}", one.0.display()))?,
        _ => {
            let mut recording = Recording::of_files(files);
            recording.budget = budget;
            let stated = recording.stated_rows();
            let rows = stated.iter().map(|(_, rows)| *rows);
            let (all, most) = (rows.clone().sum::<usize>(), rows.max().unwrap_or(0));
            if all > ROWS_MAX || most > FILE_ROWS_MAX {
                return Err(format!(
                    "the recording has {all} rows, {most} of them in one file: at most {ROWS_MAX}, {FILE_ROWS_MAX} in a file, are read here; `onramp replay` takes any"
                ));
            }
            let events = stated.iter().filter(|(table, _)| table != AckRow::TABLE).map(|(_, rows)| rows);
            let events = events.sum::<usize>();
            if events > EVENTS_MAX {
                return Err(format!(
                    "the recording has {events} rows other than those of acknowledgments: at most {EVENTS_MAX} are read here; record fewer flows with --sample or a filter"
                ));
            }
            let flows = recording.flows(FLOWS_MAX);
            if flows > FLOWS_MAX {
                return Err(format!(
                    "the recording has more than {FLOWS_MAX} flows, which is the most that is read here: record fewer with --sample or a filter"
                ));
            }
            read(&mut recording, FLOWS_MAX, buckets(flows))
        }
    };
    if recorded.model.flows.is_empty() {
        let why = recorded.problems.first().map_or_else(|| "they have no table `flows`".into(), Clone::clone);
        return Err(format!("there is no flow in these files: {why}"));
    }
    Ok(recorded)
}

/// The same as a broker would send it, and the flows.
fn messages(recorded: &Recorded) -> (Vec<BrokerMessage>, Vec<u64>) {
    let Recorded { model, reports, .. } = recorded;
    let row = |flow: &crate::live::Flow| {
        let mut row = FlowSummary::new(flow, false);
        // What all acknowledgments say is said everywhere: it is more than rounds do.
        if let Some(report) = reports.get(&flow.id).filter(|report| report.given.is_some()) {
            row = row.over(report.given);
            row.regret = report.regret;
        }
        if flow.local.port() == 0 && flow.remote.port() == 0 {
            row.algorithm = "unknown".into();
        }
        row
    };
    let rows: Vec<FlowSummary> = model.flows.values().map(row).collect();
    let flows = rows.iter().map(|row| row.flow).collect();
    let lost = Lost { lost_events: model.lost, unobserved_us: model.unobserved.as_micros() as u64 };
    let mut largest: Vec<_> = model.flows.values().collect();
    largest.sort_by_key(|flow| std::cmp::Reverse(flow.acknowledged_bytes()));
    let details = largest.into_iter().take(DETAILED_MAX).filter_map(|flow| {
        Some(BrokerMessage::Detail(Box::new(Detail {
            flow: flow.id,
            rounds_only: None,
            evidence: Output::document_text(&Evidence::new(flow)).ok()?,
            histories: Histories::default().advance(&flow.beginning, &flow.life, None),
            incidents: flow.incidents.clone(),
            shadow: reports
                .get(&flow.id)
                .and_then(|report| Output::document_text(&Shadow::new(report.given, &report.findings)).ok()),
        })))
    });
    (std::iter::once(BrokerMessage::Flows { rows, gone: Vec::new(), lost }).chain(details).collect(), flows)
}
