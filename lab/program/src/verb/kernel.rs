//! `onramp-lab kernel`.

use clap::{Args, Subcommand};
use onramp_lab::guest::{self, GuestError, Series, Sha256Digest, Source};
use serde::Serialize;

use crate::failure::Usage;
use crate::output::Output;
use crate::table::Table;

/// List or fetch the kernels that guests run
#[derive(Args, Debug)]
pub(crate) struct Kernel {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the kernels, and the versions kept
    #[command(after_help = "Examples:\n  onramp lab kernel list --json | jq '.kernels[].series'")]
    List,
    /// Fetch kernels from Debian's archive, with apt-get and this machine's own mirror and keys, or one from elsewhere
    ///
    /// They are kept below ONRAMP_CACHE, XDG_CACHE_HOME/onramp or ~/.cache/onramp. Nothing is installed, and no root is
    /// needed. A series that the archive has gone on from is listed as superseded; asked for by name, it is an error.
    ///
    /// --from needs no apt. It takes a directory, such as kernels/6.12 of another machine's cache or /lib/modules/RELEASE; a
    /// .deb or a tar archive, as a file or by http(s), which curl fetches; an OCI image of such files, as a directory or an
    /// archive (skopeo copy docker://… oci:DIR, oras copy --to-oci-layout, podman save --format oci-archive). The
    /// kernel is the file vmlinuz or vmlinuz-RELEASE in it, its modules are where modules.builtin is. It is checked
    /// before it is kept: series, modules, BTF.
    #[command(after_help = "Examples:\n  onramp lab kernel fetch\n  onramp lab kernel fetch 6.12\n  \
                            onramp lab kernel fetch 6.12 --from ./linux-image.deb\n  \
                            onramp lab kernel fetch 6.12 --from other-machine/kernels/6.12")]
    Fetch(Fetch),
}

#[derive(Args, Debug)]
struct Fetch {
    /// Series, such as 6.12 [default: all]
    series: Vec<String>,
    /// Ask the archive for newer versions of those that are kept
    #[arg(long)]
    newest: bool,
    /// Directory, archive, http(s) URL or OCI image that has the kernel of the one series named
    #[arg(long, value_name = "SOURCE", conflicts_with = "newest", requires = "series")]
    from: Option<Source>,
    /// Digest of the archive, or of the manifest of an OCI image in a directory; a URL needs it
    #[arg(long, value_name = "HEX", requires = "from")]
    sha256: Option<Sha256Digest>,
}

#[derive(Serialize)]
struct Listing {
    kernels: Vec<KernelRow>,
}

#[derive(Serialize)]
struct KernelRow {
    series: &'static str,
    suite: &'static str,
    /// What is kept of it.
    release: Option<String>,
    /// What the suite has instead, where it has gone on to another series.
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<String>,
}

impl Kernel {
    pub fn run(self, output: &Output) -> anyhow::Result<u8> {
        let rows: Vec<KernelRow> = match self.verb {
            Verb::List => {
                Series::all().iter().map(|series| row(series, series.kept())).collect::<Result<_, _>>()?
            }
            Verb::Fetch(Fetch { series, from: Some(from), sha256, .. }) => {
                let [series] = series.as_slice() else {
                    return Err(Usage::error(format!(
                        "--from is of one kernel: name one series, not {}",
                        series.len()
                    )));
                };
                let series = Series::find(series)?;
                vec![row(series, Ok(series.fetch_from(&from, sha256.as_ref())?))?]
            }
            Verb::Fetch(Fetch { series, newest, .. }) if series.is_empty() => Series::all()
                .iter()
                .map(|series| row(series, series.fetch(newest)))
                .collect::<Result<_, _>>()?,
            Verb::Fetch(Fetch { series, newest, .. }) => {
                let asked: Vec<_> = series.iter().map(|name| Series::find(name)).collect::<Result<_, _>>()?;
                let fetched = |series: &'static Series| row(series, Ok(series.fetch(newest)?));
                asked.into_iter().map(fetched).collect::<Result<_, _>>()?
            }
        };
        let listing = Listing { kernels: rows };
        output.data(&listing, || text(&listing, output))?;
        Ok(0)
    }
}

fn text(listing: &Listing, output: &Output) -> String {
    let mut table = Table::new(["SERIES", "DEBIAN", "KEPT"]);
    for row in &listing.kernels {
        let kept = match (&row.release, &row.superseded_by) {
            (Some(release), _) => release.clone(),
            (None, Some(newer)) => format!("- (superseded by {newer})"),
            (None, None) => "-".to_owned(),
        };
        table.push([row.series.to_owned(), row.suite.to_owned(), kept]);
    }
    table.render(output)
}

fn row(series: &'static Series, kernel: Result<guest::Kernel, GuestError>) -> Result<KernelRow, GuestError> {
    let (release, superseded_by) = match kernel {
        Ok(kernel) => (Some(kernel.release), None),
        Err(GuestError::NotFetched { .. }) => (None, None),
        Err(GuestError::Superseded { release, .. }) => (None, Some(release)),
        Err(error) => return Err(error),
    };
    Ok(KernelRow { series: &series.series, suite: &series.suite, release, superseded_by })
}
