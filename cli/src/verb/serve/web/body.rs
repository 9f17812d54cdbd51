//! Bodies of uploads: taken whole before anything is done with them, so that one that does not come holds nothing but what
//! it has sent.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderMap};
use futures_util::{StreamExt, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::answer::Problem;

/// A body is kept in pieces of this size.
const PIECE: usize = 64 << 10;
/// Of all bodies together.
const BYTES_MAX: usize = 128 << 20;
/// Of a body that is refused so much is still read, so that its sender reads why.
const REFUSED_BYTES_MAX: usize = 1 << 30;
/// Until it is refused, from its beginning: a little less than until an answer must begin.
const REFUSED_TIME: Duration = Duration::from_secs(13);

/// Room for bodies.
pub(super) struct Bodies(Arc<Semaphore>);

impl Default for Bodies {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BYTES_MAX / PIECE)))
    }
}

/// A body, with its room.
pub(super) struct Collected {
    pieces: Vec<Vec<u8>>,
    _room: Vec<OwnedSemaphorePermit>,
}

impl Bodies {
    /// All of a body of at most so many bytes.
    pub async fn collect(&self, body: Body, headers: &HeaderMap, most: usize) -> Result<Collected, Problem> {
        let too_large = || {
            let text =
                format!("the files have more than {} MB, which is the most that is read here", most >> 20);
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, text)
        };
        let stated =
            headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        // Who asks first whether to send it has not sent it.
        if stated > Some(most as u64) && headers.contains_key(header::EXPECT) {
            return Err(too_large());
        }
        let until = Instant::now() + REFUSED_TIME;
        let mut stream = body.into_data_stream();
        let mut collected = Collected { pieces: Vec::new(), _room: Vec::new() };
        let mut bytes = 0;
        while let Some(data) = stream.next().await {
            let mut data =
                &*data.map_err(|error| Problem::new(StatusCode::BAD_REQUEST, error.to_string()))?;
            bytes += data.len();
            let refused =
                if bytes > most { Some(too_large()) } else { self.keep(&mut data, &mut collected).err() };
            if let Some(problem) = refused {
                drop(collected);
                read_out(&mut stream, until).await;
                return Err(problem);
            }
        }
        Ok(collected)
    }

    fn keep(&self, data: &mut &[u8], collected: &mut Collected) -> Result<(), Problem> {
        while !data.is_empty() {
            let full = collected.pieces.last().is_none_or(|piece| piece.len() == PIECE);
            if full {
                let room = self.0.clone().try_acquire_owned().map_err(|_| {
                    let text = "too many recordings are being sent: try again in a moment";
                    Problem::new(StatusCode::SERVICE_UNAVAILABLE, text)
                })?;
                collected._room.push(room);
                collected.pieces.push(Vec::with_capacity(PIECE));
            }
            let Some(piece) = collected.pieces.last_mut() else { break };
            let (now, rest) = data.split_at(data.len().min(PIECE - piece.len()));
            piece.extend_from_slice(now);
            *data = rest;
        }
        Ok(())
    }
}

impl Collected {
    /// As a body, whose pieces go as they are read; and the room, to be kept for as long as what is made of them.
    pub fn into_body(self) -> (Body, impl Sized) {
        let pieces = self.pieces.into_iter().map(|piece| Ok::<_, Infallible>(Bytes::from(piece)));
        (Body::from_stream(stream::iter(pieces)), self._room)
    }
}

/// A connection that is closed while data come is reset, and its client does not see the answer.
async fn read_out(stream: &mut BodyDataStream, until: Instant) {
    let read = async {
        let mut bytes = 0;
        while let Some(Ok(data)) = stream.next().await {
            bytes += data.len();
            if bytes > REFUSED_BYTES_MAX {
                return;
            }
        }
    };
    let _ = tokio::time::timeout_at(until, read).await;
}
