//! The canonical document of an archive, and a document as an archive.
//!
//! [`Archive::to_thread`] is a pure function: equal archives yield equal documents, byte for byte.
//! A run becomes an agent's turn; the request with its first prompt becomes the user's turn before
//! it. Members that the protocol doesn't know stay in place, even if they are null. System prompts
//! and instructions are configuration and never enter a document (TP-8): they are reported as
//! losses. So are the messages of an interrupted run outside of its complete cycles.

mod draft;
mod model;
mod repair;
mod turns;

pub(crate) use draft::instant;
pub(crate) use model::model_runs;

use crate::archive::{Archive, ArchivedRun, Format, SourceText};
use crate::document::{UNNAMED, agent_id};
use crate::runs::model_runs_of;
use crate::{Converted, Loss, Losses};
use draft::Times;
use thread::{Json, Object, Thread, Version};

impl Archive {
    /// The archive of a document: its turns as they are, in one run.
    #[must_use]
    pub fn from_thread(thread: &Thread) -> Self {
        let mut root = thread.root().clone();
        let turns = root.get_mut("turns").and_then(Json::as_array_mut);
        let turns = turns.map(std::mem::take).unwrap_or_default();
        let mut run = ArchivedRun::new(
            Format::Thread,
            None,
            turns.iter().map(SourceText::from).collect(),
        );
        run.head.insert("root", root.clone());
        root.retain(|key, _| !matches!(key, "version" | "turns" | "archive" | "runs"));
        Self {
            root,
            runs: vec![run],
        }
    }

    /// The canonical document: complete cycles of every run (ThreadProtocol 0.0.4). The losses list
    /// everything that it has no place for; the archive still has it.
    pub fn to_thread(&self) -> Converted<Thread> {
        let mut losses = Losses::default();
        let mut turns = Vec::new();
        let mut of_document: Option<Object> = None;
        let mut times = Times::new(self.root.get_str("created_at").unwrap_or_default());
        let mut unnamed = false;
        for (place, run) in self.runs.iter().enumerate() {
            let pointer = format!("/runs/{place}");
            if run.format == Format::Thread {
                let (root, own) = document_of(run, &pointer, &mut losses);
                turns.extend(own.into_iter().map(turns::Built::as_it_is));
                of_document.get_or_insert(root);
                continue;
            }
            let read = model_runs_of(run, &pointer);
            losses.extend(read.losses);
            for run in read.value {
                unnamed |= run.agent_id.is_none();
                turns.extend(turns::turns(run, &mut times, &mut losses));
            }
        }
        let mut root = self.document_root(of_document);
        if unnamed {
            register_unnamed(&mut root, &turns);
        }
        let is_document = self.runs.iter().all(|run| run.format == Format::Thread);
        let mut places = Vec::with_capacity(turns.len());
        let mut jsons = Vec::with_capacity(turns.len());
        for built in turns {
            places.push(built.messages);
            jsons.push(built.turn);
        }
        // A document without turns stays without, whatever it has in their place.
        if !jsons.is_empty() {
            root.insert("turns", Json::Array(jsons));
        }
        let mut value = Thread::from_root(root);
        if !is_document {
            repair::repair(&mut value, &mut places, &mut losses);
        }
        losses.with(value)
    }

    /// The root of the document: that of the imported document, or the archive's.
    fn document_root(&self, of_document: Option<Object>) -> Object {
        let Some(mut root) = of_document else {
            let mut root = Object::new().with("version", Version::NEWEST.as_str());
            for (key, value) in &self.root {
                if !matches!(key, "version" | "turns") {
                    root.insert(key, value.clone());
                }
            }
            if !root.contains_key("agents") {
                root.insert("agents", Object::new());
            }
            root.insert("turns", Json::Array(Vec::new()));
            return root;
        };
        if self.runs.len() > 1
            && let Some(updated_at) = self.root.get("updated_at")
        {
            root.insert("updated_at", updated_at.clone());
        }
        let known = root.get_mut("agents").and_then(Json::as_object_mut);
        let ours = self.root.get("agents").and_then(Json::as_object);
        if let (Some(known), Some(ours)) = (known, ours) {
            for (id, config) in ours {
                if !known.contains_key(id) {
                    known.insert(id, config.clone());
                }
            }
        }
        root
    }
}

/// Registers the agent for turns of runs without a named agent.
fn register_unnamed(root: &mut Object, turns: &[turns::Built]) {
    let id = agent_id(UNNAMED);
    let of_it = |built: &&turns::Built| {
        built.turn.get("agent_id").and_then(Json::as_str) == Some(id.as_str())
    };
    let Some(first) = turns.iter().find(of_it) else {
        return;
    };
    let config = Object::new()
        .with("agent_id", id.as_str())
        .with("agent_name", UNNAMED)
        .with_some("created_at", first.turn.get("started_at").cloned());
    let agents = root.get_mut("agents").and_then(Json::as_object_mut);
    if let Some(agents) = agents.filter(|agents| !agents.contains_key(&id)) {
        agents.insert(id, config);
    }
}

/// The document that a run of turns is, in the newest version: its root and its turns.
fn document_of(run: &ArchivedRun, pointer: &str, losses: &mut Losses) -> (Object, Vec<Json>) {
    let mut root = run
        .head
        .get("root")
        .and_then(Json::as_object)
        .cloned()
        .unwrap_or_default();
    let turns: Vec<Json> = run.records.iter().map(SourceText::json).collect();
    if !turns.is_empty() {
        root.insert("turns", Json::Array(turns));
    }
    let thread = Thread::from_root(root);
    let mut root = newest(thread, pointer, losses).into_root();
    let turns = root.get_mut("turns").and_then(Json::as_array_mut);
    let turns = turns.map(std::mem::take).unwrap_or_default();
    (root, turns)
}

/// The document in the newest version, or as it is if it can't be brought there.
fn newest(thread: Thread, pointer: &str, losses: &mut Losses) -> Thread {
    if thread.version() == Version::NEWEST {
        return thread;
    }
    match thread::upgrade(&thread) {
        Ok(upgraded) => {
            losses.extend(upgraded.losses().map(|change| Loss {
                pointer: in_archive(pointer, &change.pointer),
                what: change.what.clone(),
            }));
            upgraded.thread
        }
        Err(error) => {
            losses.push(pointer, format!("{error}; its turns stay as they are"));
            thread
        }
    }
}

/// Converts a pointer into a document to one into the archive.
fn in_archive(run: &str, place: &str) -> String {
    match place.strip_prefix("/turns/") {
        Some(turn) => format!("{run}/records/{turn}"),
        None => format!("{run}/root{place}"),
    }
}
