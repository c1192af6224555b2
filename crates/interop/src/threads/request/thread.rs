//! `POST /threads` (AITP: `POST /thread`) and `POST /threads/{id}`.

use super::message::CreateMessage;
use crate::metadata::noted;
use crate::threads::error::RequestError;
use crate::threads::fields::Fields;
use crate::threads::metadata::{Carrier, Metadata, NAMESPACE};
use crate::threads::tools;
use serde_json::{Map, Value, json};
use timeline::Payload;

/// A thread that is to be made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateThread {
    /// The initial messages.
    pub messages: Vec<CreateMessage>,
    /// The client's metadata, with AITP's `actors` and `parent_id`.
    pub metadata: Metadata,
    /// The client's value.
    pub tool_resources: Option<Value>,
}

impl CreateThread {
    /// Reads the body; there may be none.
    pub fn read(body: Option<&Value>) -> Result<Self, RequestError> {
        match body {
            None | Some(Value::Null) => Ok(Self::default()),
            Some(body) => Self::of(&Fields::of(body, "")?),
        }
    }

    pub(super) fn of(fields: &Fields<'_>) -> Result<Self, RequestError> {
        Ok(Self {
            messages: CreateMessage::list(fields, "messages")?,
            metadata: Metadata::read(fields, Carrier::Thread)?.unwrap_or_default(),
            tool_resources: tools::tool_resources(fields)?,
        })
    }

    /// The metadata to store with the thread.
    pub fn stored(&self) -> Option<Payload> {
        let mut kept = self.metadata.0.clone();
        if let Some(resources) = &self.tool_resources {
            let own = json!({"tool_resources": resources});
            kept.insert(NAMESPACE.to_owned(), own);
        }
        (!kept.is_empty()).then(|| Value::Object(kept).into())
    }
}

/// A change of a thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModifyThread {
    /// The new metadata, which replaces the old; unchanged when absent.
    pub metadata: Option<Metadata>,
    /// In the place of what was there, null for none; unchanged when absent.
    pub tool_resources: Option<Value>,
}

impl ModifyThread {
    /// Reads the body. AITP retrieves a thread with this request; without a body nothing is changed.
    pub fn read(body: Option<&Value>) -> Result<Self, RequestError> {
        let empty = Value::Object(Map::new());
        let body = body.filter(|body| !body.is_null()).unwrap_or(&empty);
        let fields = Fields::of(body, "")?;
        let resources = tools::tool_resources(&fields)?;
        let cleared = || fields.present("tool_resources").map(|_| Value::Null);
        Ok(Self {
            metadata: Metadata::change(&fields, Carrier::Thread)?,
            tool_resources: resources.or_else(cleared),
        })
    }

    /// Removes and returns AITP's `actors` from the change, because participants are changed
    /// otherwise. The thread's parent also stays unchanged.
    pub fn take_actors(&mut self) -> Option<Value> {
        let metadata = self.metadata.as_mut()?;
        metadata.0.remove("parent_id");
        let actors = metadata.0.remove("actors");
        actors.filter(|actors| !actors.is_null())
    }

    /// Whether there is nothing to change.
    pub fn is_empty(&self) -> bool {
        self.metadata.is_none() && self.tool_resources.is_none()
    }

    /// A thread's metadata with the change made. AITP's members stay unless the change has them, and
    /// what is the server's own stays.
    pub fn stored(self, before: Option<&Payload>) -> Payload {
        let mut kept = match self.metadata {
            Some(metadata) => noted(before, metadata.0),
            None => match before.map(Payload::value) {
                Some(Value::Object(kept)) => kept,
                _ => Map::new(),
            },
        };
        match self.tool_resources {
            Some(Value::Null) => {
                kept.remove(NAMESPACE);
            }
            Some(resources) => {
                let own = json!({"tool_resources": resources});
                kept.insert(NAMESPACE.to_owned(), own);
            }
            None => {}
        }
        Value::Object(kept).into()
    }
}
