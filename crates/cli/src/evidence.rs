//! `prove` and `seal`: the chain of a log, and a record of all chains outside the store.

use crate::args::{ProveOptions, SealOptions};
use crate::error::CliError;
use crate::output::{BAD, DIM, GOOD, Output, clean};
use crate::store::{StoreLocation, chosen, only};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use jiff::Timestamp;
use runtime::RuntimeError;
use serde::{Deserialize, Serialize};
use serde_json::json;
use server::{App, ChainEnd, Compared};
use std::fmt::Write as _;
use std::path::Path;
use store::StoreError;
use store::objects::sha256;
use timeline::ThreadId;

/// The thread with this id, or with this key of a tenant.
pub(crate) async fn thread_id(
    app: &App,
    name: &str,
    tenant: Option<&str>,
) -> Result<ThreadId, CliError> {
    let store = app.default_store();
    let id: ThreadId = name.into();
    match store.row(&id).await {
        Err(StoreError::NotFound) => {
            let tenant = crate::store::tenant(app, tenant)?;
            match store.find(&tenant, name).await {
                Err(StoreError::NotFound) => {
                    let key = name.to_owned();
                    Err(CliError::NotFound { key })
                }
                other => Ok(other.map_err(RuntimeError::from)?.thread.id),
            }
        }
        other => Ok(other.map(|_| id).map_err(RuntimeError::from)?),
    }
}

/// Prints the chain of a thread and checks it.
pub(crate) async fn prove(
    place: &StoreLocation,
    options: &ProveOptions,
    output: &Output,
) -> Result<(), CliError> {
    let app = place.look().await?;
    let app = chosen(&app, options.shard.as_deref(), options.tenant.as_deref())?;
    let store = app.default_store();
    let id = thread_id(&app, &options.thread, options.tenant.as_deref()).await?;
    let chain = store.chain(&id).await.map_err(RuntimeError::from)?;
    for block in &chain.blocks {
        let (digest, sum) = (hex(&block.digest), hex(&block.sum));
        output.value(&json!({
            "first": block.first, "events": block.n_events, "sha256": digest, "sum": sum, "holds": block.holds,
            "erased": block.erased.map(|digest| hex(&digest)),
        }))?;
        let erased = if block.erased.is_some() {
            "  erased"
        } else {
            ""
        };
        let mark = if block.holds { GOOD } else { BAD };
        output.line(&format!(
            "{mark}{}{mark:#}  {:>8} {:>6}  {digest}  {sum}{erased}",
            if block.holds { "ok " } else { "bad" },
            block.first,
            block.n_events,
        ))?;
    }
    let sum = hex(&chain.end.sum);
    output.value(&json!({
        "thread": id.to_string(), "tail": chain.end.tail, "sum": sum, "holds": chain.holds,
    }))?;
    output.line(&format!(
        "{DIM}thread {} ends with event {} and sum {sum}{DIM:#}",
        clean(&id.to_string()),
        chain.end.tail
    ))?;
    if chain.holds {
        return output.line("the chain holds");
    }
    Err(CliError::BrokenChain {
        thread: id.to_string(),
    })
}

/// The content of a seal file.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Seal {
    #[serde(rename = "loomline_seal")]
    version: u32,
    at: Timestamp,
    n_threads: u64,
    n_events: u64,
    /// The SHA-256 of the instant and of all threads.
    digest: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<Signature>,
    threads: Vec<SealedThread>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Signature {
    algorithm: String,
    public_key: String,
    value: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct SealedThread {
    id: String,
    tail: u64,
    sum: String,
}

const VERSION: u32 = 1;
const ALGORITHM: &str = "ed25519";

/// Whether a thread of a database belongs to a tenant of this database. A moved tenant may have left its former data.
async fn is_current(app: &App, shard: &str, thread: &ThreadId) -> Result<bool, CliError> {
    if app.shards().len() == 1 {
        return Ok(true);
    }
    match only(app, shard)?.default_store().row(thread).await {
        Ok(row) => Ok(app.shard(&row.tenant) == shard),
        Err(StoreError::NotFound) => Ok(false),
        Err(error) => Err(RuntimeError::from(error).into()),
    }
}

/// Compares the end of a log with that in the database of its tenant.
async fn compare(app: &App, end: &ChainEnd) -> Result<Compared, CliError> {
    for shard in app.shards() {
        if is_current(app, &shard, &end.thread.as_str().into()).await? {
            let store = only(app, &shard)?;
            let here = store.default_store().compare(end.clone()).await;
            return Ok(here.map_err(RuntimeError::from)?);
        }
    }
    Ok(Compared::Missing)
}

/// Writes a seal of all threads.
pub(crate) async fn seal(
    place: &StoreLocation,
    options: &SealOptions,
    output: &Output,
) -> Result<(), CliError> {
    let app = place.look().await?;
    let mut threads = Vec::new();
    for shard in app.shards() {
        let ends = only(&app, &shard)?.default_store().chain_ends().await;
        for end in ends.map_err(RuntimeError::from)? {
            if is_current(&app, &shard, &end.thread.as_str().into()).await? {
                threads.push(sealed(end));
            }
        }
    }
    let mut seal = Seal {
        version: VERSION,
        at: Timestamp::now(),
        n_threads: threads.len() as u64,
        n_events: threads.iter().map(|thread| thread.tail).sum(),
        digest: String::new(),
        signature: None,
        threads,
    };
    seal.digest = seal.digest();
    if let Some(file) = &options.sign {
        let key = std::fs::read(file)
            .map_err(CliError::io(format!("read the key {}", file.display())))?;
        let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&key).map_err(|error| {
            fault(
                file,
                &format!("it is no Ed25519 key in PKCS #8, DER: {error}"),
            )
        })?;
        seal.signature = Some(Signature {
            algorithm: ALGORITHM.to_owned(),
            public_key: hex(key.public_key().as_ref()),
            value: hex(key.sign(&seal.signed()).as_ref()),
        });
    }
    let text =
        serde_json::to_string(&seal).map_err(|error| fault(&options.file, &error.to_string()))?;
    std::fs::write(&options.file, text + "\n")
        .map_err(CliError::io(format!("write {}", options.file.display())))?;
    let signer = seal.signature.as_ref().map(|it| it.public_key.as_str());
    output.value(&json!({
        "file": options.file.display().to_string(), "threads": seal.n_threads, "events": seal.n_events,
        "digest": seal.digest, "public_key": signer,
    }))?;
    output.line(&format!(
        "sealed {} threads with {} events; the digest is {}",
        seal.n_threads, seal.n_events, seal.digest
    ))?;
    match signer {
        Some(key) => output.line(&format!("{DIM}signed; the public key is {key}{DIM:#}")),
        None => Ok(()),
    }
}

fn sealed(end: ChainEnd) -> SealedThread {
    SealedThread {
        id: end.thread,
        tail: end.tail,
        sum: hex(&end.sum),
    }
}

impl Seal {
    /// Reads a seal. Refuses one that is not whole, or not signed by this key.
    pub(crate) fn read(file: &Path, public_key: Option<&str>) -> Result<Self, CliError> {
        let text = std::fs::read_to_string(file)
            .map_err(CliError::io(format!("read the seal {}", file.display())))?;
        let seal: Self =
            serde_json::from_str(&text).map_err(|error| fault(file, &error.to_string()))?;
        if seal.version != VERSION {
            return Err(fault(file, "a newer program has written it"));
        }
        if seal.digest != seal.digest() {
            return Err(fault(
                file,
                "its content has changed: the digest is another",
            ));
        }
        if let Some(signature) = &seal.signature {
            let signer = unhex(&signature.public_key).unwrap_or_default();
            let value = unhex(&signature.value).unwrap_or_default();
            let key = UnparsedPublicKey::new(&ED25519, signer);
            if signature.algorithm != ALGORITHM || key.verify(&seal.signed(), &value).is_err() {
                return Err(fault(file, "its signature is wrong"));
            }
        }
        let signer = seal.signature.as_ref().map(|it| it.public_key.as_str());
        if public_key.is_some_and(|key| signer != Some(&*key.to_ascii_lowercase())) {
            return Err(fault(file, "it is not signed by this key"));
        }
        Ok(seal)
    }

    /// When it was made.
    pub(crate) fn at(&self) -> Timestamp {
        self.at
    }

    /// The number of its threads.
    pub(crate) fn n_threads(&self) -> usize {
        self.threads.len()
    }

    /// The differences of a store: each thread and its fault.
    pub(crate) async fn differences(&self, app: &App) -> Result<Vec<(String, String)>, CliError> {
        let mut found = Vec::new();
        for thread in &self.threads {
            let sum = unhex(&thread.sum).and_then(|sum| sum.try_into().ok());
            let end = ChainEnd {
                thread: thread.id.clone(),
                tail: thread.tail,
                sum: sum.unwrap_or_default(),
            };
            let tail = thread.tail;
            let what = match compare(app, &end).await? {
                Compared::Continues => continue,
                Compared::Older(now) => format!(
                    "the database is older than the seal: the log ends with event {now}, and it had {tail}"
                ),
                Compared::Differs => {
                    format!("the log is not the one that was sealed at event {tail}")
                }
                Compared::Missing => {
                    "the thread is missing: it was deleted since, or the database is older than the seal; the store \
                     does not keep which"
                        .to_owned()
                }
            };
            found.push((thread.id.clone(), what));
        }
        Ok(found)
    }

    fn digest(&self) -> String {
        let mut text = format!("loomline seal {}\n{}\n", self.version, self.at);
        for SealedThread { id, tail, sum } in &self.threads {
            // Writing to a string can't fail.
            let _ = writeln!(text, "{}:{id} {tail} {sum}", id.len());
        }
        hex(&sha256(text.as_bytes()))
    }

    fn signed(&self) -> Vec<u8> {
        format!("loomline seal {}\n", self.digest).into_bytes()
    }
}

fn fault(file: &Path, why: &str) -> CliError {
    CliError::Seal {
        file: file.display().to_string(),
        why: why.to_owned(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let pairs = digits?;
    let bytes = pairs.chunks_exact(2);
    if !bytes.remainder().is_empty() {
        return None;
    }
    bytes
        .map(|pair| match pair {
            [high, low] => u8::try_from(high * 16 + low).ok(),
            _ => None,
        })
        .collect()
}
