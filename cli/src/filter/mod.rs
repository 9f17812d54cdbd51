//! Filters as ss(8) has them: which connections, by addresses and ports.

mod host;
mod parse;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};

use onramp_loader::telemetry;
use onramp_net::Prefix;

pub(crate) use host::{interface, read_services, zoned};

/// An expression; without one everything passes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter(Option<Expression>);

/// What is true or false of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Expression {
    Host(Host),
    Port(Port),
    Not(Box<Expression>),
    /// From left to right, as ss reads it: `and` and `or` bind alike.
    Chain(Box<Expression>, Vec<(Operator, Expression)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    And,
    Or,
}

/// One end, by its address and port; none: any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Host {
    side: Side,
    prefix: Option<Prefix>,
    port: Option<u16>,
}

/// The port of one end, compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Port {
    side: Side,
    comparison: Comparison,
    /// None: any port.
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Local,
    Remote,
}

impl Filter {
    /// Reads the words of a filter; how they were split over arguments does not matter.
    ///
    /// # Errors
    /// Which word is wrong, and what may stand there.
    pub fn parse(words: &[String]) -> Result<Self, String> {
        parse::parse(&words.join(" ")).map(Self)
    }

    /// Whether a connection between these passes.
    pub fn matches(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        self.0.as_ref().is_none_or(|expression| expression.matches(local, remote))
    }

    /// The part of it that the kernel can check: what passes here passes there too.
    pub fn in_kernel(&self) -> telemetry::Filter {
        let mut conditions = Vec::new();
        if let Some(expression) = &self.0 {
            expression.required(&mut conditions);
        }
        let of = |side| conditions.iter().filter(move |host: &&Host| host.side == side);
        telemetry::Filter {
            remote: of(Side::Remote).find_map(|host| host.prefix).map(in_kernel),
            remote_port: of(Side::Remote).find_map(|host| host.port),
            local_port: of(Side::Local).find_map(|host| host.port),
        }
    }
}

fn in_kernel(prefix: Prefix) -> (IpAddr, u8) {
    (prefix.address(), prefix.length() as u8)
}

impl Expression {
    fn matches(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        let end = |side| if side == Side::Local { local } else { remote };
        match self {
            Self::Host(host) => {
                let end = end(host.side);
                host.port.is_none_or(|port| port == end.port())
                    && host.prefix.is_none_or(|prefix| prefix.contains(end.ip()))
            }
            Self::Port(Port { side, comparison, port }) => {
                port.is_none_or(|port| comparison.holds(end(*side).port(), port))
            }
            Self::Not(inner) => !inner.matches(local, remote),
            Self::Chain(first, rest) => {
                rest.iter().fold(first.matches(local, remote), |so_far, (operator, next)| match operator {
                    Operator::And => so_far && next.matches(local, remote),
                    Operator::Or => so_far || next.matches(local, remote),
                })
            }
        }
    }

    /// Adds conditions that must hold wherever this does.
    fn required(&self, conditions: &mut Vec<Host>) {
        match self {
            Self::Host(host) => conditions.push(*host),
            Self::Port(Port { side, comparison: Comparison::Equal, port }) => {
                conditions.push(Host { side: *side, prefix: None, port: *port });
            }
            Self::Port(_) | Self::Not(_) => {}
            Self::Chain(first, rest) => {
                // What stands before the last `or` need not hold.
                let last_or = rest.iter().rposition(|(operator, _)| *operator == Operator::Or);
                if last_or.is_none() {
                    first.required(conditions);
                }
                for (_, next) in &rest[last_or.map_or(0, |at| at + 1)..] {
                    next.required(conditions);
                }
            }
        }
    }
}

impl Comparison {
    fn holds(self, is: u16, than: u16) -> bool {
        match self {
            Self::Equal => is == than,
            Self::NotEqual => is != than,
            Self::Less => is < than,
            Self::LessOrEqual => is <= than,
            Self::Greater => is > than,
            Self::GreaterOrEqual => is >= than,
        }
    }
}
