//! Netlink framing. Everything that comes from the kernel is read through bounds-checked accessors: short or odd input
//! gives `None`, never a panic.

/// `struct nlmsghdr` and alignment of messages and attributes.
const HEADER: usize = 16;
const ALIGN: usize = 4;
const ATTRIBUTE_HEADER: usize = 4;
/// `NLA_F_NESTED` and `NLA_F_NET_BYTEORDER` are flags in an attribute's type.
const TYPE_MASK: u16 = 0x3fff;

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

pub(crate) fn u8_at(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    array_at(bytes, at).map(u16::from_ne_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array_at(bytes, at).map(u32::from_ne_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array_at(bytes, at).map(u64::from_ne_bytes)
}

/// One netlink message.
pub(crate) struct Message<'a> {
    pub kind: u16,
    pub flags: u16,
    pub sequence: u32,
    pub payload: &'a [u8],
}

/// The messages of one datagram. `Err(())` is the last item when the rest is not a message.
pub(crate) fn messages(datagram: &[u8]) -> impl Iterator<Item = Result<Message<'_>, ()>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let message = message(rest);
        rest = match &message {
            Some((_, length)) => rest.get(length.next_multiple_of(ALIGN)..).unwrap_or_default(),
            None => &[],
        };
        Some(message.map(|(message, _)| message).ok_or(()))
    })
}

fn message(bytes: &[u8]) -> Option<(Message<'_>, usize)> {
    let length = u32_at(bytes, 0)? as usize;
    let message = Message {
        kind: u16_at(bytes, 4)?,
        flags: u16_at(bytes, 6)?,
        sequence: u32_at(bytes, 8)?,
        payload: bytes.get(HEADER..length)?,
    };
    Some((message, length))
}

/// Attributes by type, flags removed. Ends early at anything malformed.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(rest, 0)?);
        let kind = u16_at(rest, 2)? & TYPE_MASK;
        let value = rest.get(ATTRIBUTE_HEADER..length)?;
        rest = rest.get(length.next_multiple_of(ALIGN)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// A name that ends with a NUL.
pub(crate) fn text(value: &[u8]) -> String {
    let name = value.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// A message of this kind, with the body that `fill` appends.
pub(crate) fn with_header(kind: u16, flags: i32, sequence: u32, fill: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(128);
    out.extend(0_u32.to_ne_bytes()); // length, below
    out.extend(kind.to_ne_bytes());
    out.extend((flags as u16).to_ne_bytes());
    out.extend(sequence.to_ne_bytes());
    out.extend(0_u32.to_ne_bytes()); // port: the kernel fills it in
    fill(&mut out);
    let length = (out.len() as u32).to_ne_bytes();
    out[..4].copy_from_slice(&length);
    out
}

/// Appends an attribute.
pub(crate) fn push_attribute(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    out.extend(((ATTRIBUTE_HEADER + value.len()) as u16).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(ALIGN), 0);
}
