//! Builds an algorithm from outside the tree: from its header to an object that [`find`](crate::find) takes by its path. The
//! headers of onramp that it is built with are in this library.

use std::env::consts::ARCH;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use onramp_algorithm::Algorithm;
use onramp_algorithm::outside::{self, BBR_SECTION, HOST_SECTION, OutsideError, TestFailure};

use crate::object::clang;

include!(concat!(env!("OUT_DIR"), "/headers.rs"));

/// What a header starts from: `onramp-lab new` writes it with the name in it.
const TEMPLATE: &str = include_str!("outside/template.h");
/// The same of its test.
const TEST_TEMPLATE: &str = include_str!("outside/template_test.c");
/// Longest name, bytes: the kernel gives a congestion control 15, and `onramp_` is in front.
const NAME_MAX: usize = 8;

/// Why no object was made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Not a name that an algorithm can have.
    #[error(
        "{name:?} cannot be an algorithm's name: give 1 to {NAME_MAX} lower-case letters, digits and _, a letter first; the kernel gives a congestion control 15 bytes, and onramp_ is in front"
    )]
    Name {
        /// What was given.
        name: String,
    },
    /// An algorithm of the tree has its name, or it is not what an object must be.
    #[error(transparent)]
    Outside(#[from] OutsideError),
    /// Not a header.
    #[error("{} is no header: give a file NAME.h, as `onramp-lab new NAME` writes it", path.display())]
    NoHeader {
        /// What was given.
        path: PathBuf,
    },
    /// Its definitions begin with another name than its file has.
    #[error(
        "{} defines {}, and its name requires {upper}_PARAMETERS: rename the file or its names, or begin with `onramp-lab new {name}`",
        path.display(),
        found.as_deref().unwrap_or("no parameters")
    )]
    OtherNames {
        /// The header.
        path: PathBuf,
        /// What it is called.
        name: String,
        /// The same as definitions have it.
        upper: String,
        /// What it defines in place of its parameters.
        found: Option<String>,
    },
    /// A file that is there already.
    #[error("{} is there already: give another name, or remove it", path.display())]
    Exists {
        /// Which.
        path: PathBuf,
    },
    /// No clang, or one that is too old.
    #[error("{0}")]
    Clang(String),
    /// Clang refuses the header, or its test.
    #[error("clang refuses {}:\n{}", path.display(), text.trim_end())]
    Refused {
        /// What it was given.
        path: PathBuf,
        /// What it says.
        text: String,
    },
    /// Tests have failed.
    #[error("{} has failed: {}", path.display(), failures.join("; "))]
    Tests {
        /// Their file.
        path: PathBuf,
        /// Each with its line.
        failures: Vec<String>,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was done.
        action: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BuildError + use<> {
    let path = path.to_owned();
    move |source| BuildError::Io { action, path, source }
}

/// What was built.
#[derive(Debug)]
pub struct Built {
    /// The algorithm, as its object says.
    pub algorithm: Algorithm,
    /// The object.
    pub object: PathBuf,
    /// Names of the tests that have passed; `None`: there is no file of them.
    pub tests: Option<Vec<String>>,
    /// What clang warns of.
    pub warnings: String,
}

/// Writes `NAME.h` and `NAME_test.c` into a directory: an algorithm that exits once RTTs have risen, and its test.
///
/// # Errors
/// [`BuildError::Name`], [`BuildError::Outside`] for a name of the tree, [`BuildError::Exists`], [`BuildError::Io`].
pub fn create(name: &str, directory: &Path) -> Result<[PathBuf; 2], BuildError> {
    check_name(name)?;
    let files = [(format!("{name}.h"), TEMPLATE), (format!("{name}_test.c"), TEST_TEMPLATE)];
    let files = files.map(|(file, text)| (directory.join(file), text));
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists()) {
        return Err(BuildError::Exists { path: path.clone() });
    }
    for (path, text) in &files {
        let text = text.replace("NEWNAME", &name.to_uppercase()).replace("newname", name);
        fs::write(path, text).map_err(failed("write", path))?;
    }
    Ok(files.map(|(path, _)| path))
}

/// Makes the object of the header, at `object` or as `NAME.o` beside it, after the tests of `NAME_test.c` beside it, where
/// there are some, have passed. `work` is an empty directory for what is made on the way.
///
/// # Errors
/// [`BuildError`].
pub fn build(header: &Path, object: Option<&Path>, work: &Path) -> Result<Built, BuildError> {
    let no_header = || BuildError::NoHeader { path: header.to_owned() };
    let name = header.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".h"));
    let name = name.ok_or_else(no_header)?;
    check_name(name)?;
    check_names(header, name)?;
    let clang = clang::find_clang().map_err(BuildError::Clang)?;
    for (path, text) in HEADERS {
        let path = work.join("onramp").join(path);
        let directory = path.parent().unwrap_or(work);
        fs::create_dir_all(directory).map_err(failed("make", directory))?;
        fs::write(&path, text).map_err(failed("write", &path))?;
    }
    let compiler = Compiler { clang: &clang, header, name, work };
    let mut tests = None;
    let test = header.with_file_name(format!("{name}_test.c"));
    let mut warnings = String::new();
    if test.exists() {
        let made = work.join("test.o");
        warnings += &compiler.run(clang_pure(&clang), &test, &test, &made)?;
        tests = Some(run_tests(&test, &made)?);
    }
    let host = work.join("host.o");
    warnings += &compiler.generated("host.c", clang_pure(&clang), &compiler.host(), &host)?;
    let bytes = fs::read(&host).map_err(failed("read", &host))?;
    outside::check(&bytes, header)?;
    let arch = clang::architecture(ARCH).unwrap_or(ARCH);
    let bbr = work.join("bbr.o");
    let mut command = clang::command(&clang, arch);
    command.arg("-DONRAMP_BBR");
    compiler.generated("bbr.c", command, &compiler.shell(), &bbr)?;
    let whole = work.join("whole.o");
    let text = compiler.shell() + &carried(HOST_SECTION, &host) + &carried(BBR_SECTION, &bbr);
    compiler.generated("whole.c", clang::command(&clang, arch), &text, &whole)?;
    let bytes = fs::read(&whole).map_err(failed("read", &whole))?;
    let object = object.map_or_else(|| header.with_extension("o"), Path::to_owned);
    let algorithm = Algorithm::from(outside::read(bytes.clone(), &object)?);
    fs::write(&object, bytes).map_err(failed("write", &object))?;
    Ok(Built { algorithm, object, tests, warnings })
}

/// Whether an algorithm from outside the tree can have the name.
fn check_name(name: &str) -> Result<(), BuildError> {
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    let allowed = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '_';
    if name.len() > NAME_MAX || !begins || !name.chars().all(allowed) {
        return Err(BuildError::Name { name: name.to_owned() });
    }
    Ok(outside::require_free(name)?)
}

/// Whether the header declares its parameters under the name of its file, without which clang would complain of what is made
/// here.
fn check_names(header: &Path, name: &str) -> Result<(), BuildError> {
    let text = fs::read_to_string(header).map_err(failed("read", header))?;
    let defined =
        text.lines().filter_map(|line| line.strip_prefix("#define ")?.trim_start().split('(').next());
    let mut found = defined.filter(|defined| defined.ends_with("_PARAMETERS")).peekable();
    let (first, upper) = (found.peek().map(|first| (*first).to_owned()), name.to_uppercase());
    if found.any(|defined| defined.strip_suffix("_PARAMETERS") == Some(&upper)) {
        return Ok(());
    }
    Err(BuildError::OtherNames { path: header.to_owned(), name: name.to_owned(), upper, found: first })
}

fn run_tests(path: &Path, object: &Path) -> Result<Vec<String>, BuildError> {
    let bytes = fs::read(object).map_err(failed("read", object))?;
    let no_object = |why| OutsideError::NoObject { path: path.to_owned(), why };
    let results = outside::run_tests(&bytes).map_err(no_object)?;
    let failures: Vec<String> = results
        .iter()
        .filter_map(|(name, result)| {
            Some(match result.as_ref().err()? {
                TestFailure::Line(line) => format!("{name} at line {line}"),
                TestFailure::Fault(fault) => format!("{name} {fault}"),
            })
        })
        .collect();
    if failures.is_empty() {
        return Ok(results.into_iter().map(|(name, _)| name).collect());
    }
    Err(BuildError::Tests { path: path.to_owned(), failures })
}

fn clang_pure(clang: &str) -> Command {
    let mut command = Command::new(clang);
    command.args(clang::PURE);
    command
}

/// C that puts a file into a section of the object.
fn carried(section: &str, path: &Path) -> String {
    let path = path.display();
    format!("asm(\".pushsection {section},\\\"\\\",@progbits\\n.incbin \\\"{path}\\\"\\n.popsection\");\n")
}

struct Compiler<'a> {
    clang: &'a str,
    header: &'a Path,
    name: &'a str,
    work: &'a Path,
}

impl Compiler<'_> {
    /// The table and the functions of the host build.
    fn host(&self) -> String {
        let (name, upper) = (self.name, self.name.to_uppercase());
        format!(
            "#include \"{name}.h\"\n#include \"abi.h\"\n\
             #if {upper}_TRAITS & TRAIT_EXTRA\n\
             #define ALGORITHMS_OF(X, EXTRA) EXTRA({name}, {upper}, {upper}_ABOUT, {upper}_SOURCE)\n\
             #else\n\
             #define ALGORITHMS_OF(X, EXTRA) X({name}, {upper}, {upper}_ABOUT, {upper}_SOURCE)\n\
             #endif\n\
             #define ALGORITHMS(X) ALGORITHMS_OF(X, X)\n\
             #include \"host/table.h\"\n\
             const struct object_abi onramp_abi = {{ OBJECT_MARK, ABI_VERSION }};\n"
        )
    }

    /// The shell, as `<algorithm>.bpf.c` of the tree.
    fn shell(&self) -> String {
        let (name, upper) = (self.name, self.name.to_uppercase());
        format!(
            "#include \"{name}.h\"\n#define ALGORITHM {name}\n#define ALGORITHM_UPPER {upper}\n\
             #include \"kernel/congestion_ops.bpf.h\"\n"
        )
    }

    /// Compiles C that is made here.
    fn generated(&self, file: &str, command: Command, text: &str, out: &Path) -> Result<String, BuildError> {
        let path = self.work.join(file);
        fs::write(&path, text).map_err(failed("write", &path))?;
        self.run(command, &path, self.header, out)
    }

    /// What it warns of.
    fn run(
        &self,
        mut command: Command,
        source: &Path,
        given: &Path,
        out: &Path,
    ) -> Result<String, BuildError> {
        let beside = self.header.parent().filter(|parent| !parent.as_os_str().is_empty());
        let onramp = self.work.join("onramp");
        command.arg("-I").arg(beside.unwrap_or(Path::new(".")));
        for directory in ["", "algorithm", "host"] {
            command.arg("-I").arg(onramp.join(directory));
        }
        command.arg(format!("-ffile-prefix-map={}=onramp", self.work.display()));
        let output = command.arg("-c").arg(source).arg("-o").arg(out).output();
        let output =
            output.map_err(|error| BuildError::Clang(format!("cannot run {}: {error}", self.clang)))?;
        // Where clang says that it was included from is of no use.
        let text = String::from_utf8_lossy(&output.stderr);
        let work = self.work.to_string_lossy();
        let text: String = text
            .lines()
            .filter(|line| !(line.starts_with("In file included from") && line.contains(&*work)))
            .map(|line| format!("{}\n", line.replace(&format!("{work}/"), "")))
            .collect();
        if output.status.success() {
            return Ok(text);
        }
        Err(BuildError::Refused { path: given.to_owned(), text })
    }
}
