//! What the web part gets before anything else, and no other user may read: not as arguments, which every user sees.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use onramp_files::bounded;
use serde::{Deserialize, Serialize};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::token::{Token, only_for_its_owner};
use super::wire::{LENGTH, decode, encode, length};
use crate::failure::Usage;

/// Tokens, and certificates with all that certify them.
const BYTES_MAX: usize = 1 << 20;

/// Secrets of the web part.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Setup {
    /// What reading takes.
    pub read: Option<Token>,
    pub tls: Option<Tls>,
}

impl Setup {
    pub fn send(&self, mut to: &UnixStream) -> anyhow::Result<()> {
        to.write_all(&encode(self)?).context("cannot send the web part its tokens")
    }

    pub fn receive(mut from: &UnixStream) -> anyhow::Result<Self> {
        let mut head = [0; LENGTH];
        from.read_exact(&mut head).context("cannot read from the broker")?;
        let length = length(head, BYTES_MAX).ok_or_else(|| anyhow!("the broker says too much"))?;
        let mut frame = vec![0; length];
        from.read_exact(&mut frame).context("cannot read from the broker")?;
        decode(&frame).context("the broker is not understood")
    }
}

/// A certificate with those that lead to it, and its key, both as PEM.
#[derive(Serialize, Deserialize)]
pub(super) struct Tls {
    certificate: String,
    key: String,
}

impl Tls {
    /// Reads both, and tries whether they go together.
    pub fn read(certificate: &Path, key: &Path) -> anyhow::Result<Self> {
        let name = key.display();
        only_for_its_owner("key", key)?;
        let text =
            |path: &Path| bounded::read_text(path).with_context(|| format!("cannot read {}", path.display()));
        let tls = Self { certificate: text(certificate)?, key: text(key)? };
        tls.config().map_err(|error| {
            Usage::error(format!(
                "--tls-cert {} and --tls-key {name} cannot be used: {error:#}",
                certificate.display()
            ))
        })?;
        Ok(tls)
    }

    /// TLS 1.3 for HTTP/1.1.
    pub fn config(&self) -> anyhow::Result<Arc<ServerConfig>> {
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>().context("the certificate is no PEM")?;
        if chain.is_empty() {
            return Err(anyhow!("the certificate's file has no section CERTIFICATE"));
        }
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())
            .context("the key's file has no section PRIVATE KEY")?;
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
        let mut config = config.context("they do not go together")?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A certificate of `localhost` that certifies itself.
    pub fn own() -> (CertificateDer<'static>, Tls) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let tls = Tls { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() };
        (made.cert.into(), tls)
    }

    #[test]
    fn a_certificate_and_its_key_are_read_and_what_is_wrong_with_them_is_said() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str, mode: u32| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let (_, tls) = own();
        let (_, other) = own();
        let certificate = file("certificate", &tls.certificate, 0o644);
        let key = file("key", &tls.key, 0o600);
        assert!(Tls::read(&certificate, &key).is_ok());
        let half = &tls.certificate[..200];
        let broken = format!("{}\n*\n{}", &tls.certificate[..200], &tls.certificate[201..]);
        for (certificate, key, said) in [
            (certificate.clone(), file("open", &tls.key, 0o640), "chmod 600"),
            (certificate.clone(), file("other", &other.key, 0o600), "do not go together"),
            (certificate.clone(), file("empty", "", 0o600), "no section PRIVATE KEY"),
            (certificate.clone(), directory.path().join("none"), "cannot look at the key"),
            (file("nothing", "", 0o644), key.clone(), "no section CERTIFICATE"),
            (file("half", half, 0o644), key.clone(), "cannot be used"),
            (file("broken", &broken, 0o644), key.clone(), "cannot be used"),
            (key.clone(), key.clone(), "no section CERTIFICATE"),
            (certificate.clone(), certificate, "can be used by others"),
        ] {
            let error = format!("{:#}", Tls::read(&certificate, &key).err().unwrap());
            assert!(error.contains(said), "{said}: {error}");
        }
    }

    #[test]
    fn what_the_web_part_is_reported_arrives() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let token = Token::new("0123456789abcdef").unwrap();
        Setup { read: Some(token), tls: Some(own().1) }.send(&ours).unwrap();
        let received = Setup::receive(&theirs).unwrap();
        assert!(received.read.unwrap().is("0123456789abcdef") && received.tls.unwrap().config().is_ok());
        drop(ours);
        assert!(Setup::receive(&theirs).is_err());
    }
}
