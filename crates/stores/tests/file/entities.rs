//! The entities of EK §4: each field is a column, and has the value that the log gives it (EK-1).

use super::{open, place, written};
use rusqlite::Connection;
use rusqlite::types::{FromSql, ValueRef};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use store::suite::kinds::{item_events, item_kinds};
use store::suite::script::{first, item, respond, script_of_answers, start, tool_result};
use store::suite::{Author, script};
use store::{Filter, NewRecord, Store};
use timeline::{
    Chunk, Command, Ending, Event, Interruption, Marker, NewItem, NewThread, Record, Seq,
    StepOutcome, Trigger,
};

/// An entity: its relation, the column that names it, and the column of each field of EK §4.
struct Entity {
    name: &'static str,
    relation: &'static str,
    fields: &'static [(&'static str, &'static str)],
}

const ENTITIES: [Entity; 6] = [
    Entity {
        name: "thread",
        relation: "thread_threads",
        fields: &[
            ("id", "id"),
            ("key", "key"),
            ("status", "status"),
            ("createdAt", "created_at"),
            ("updatedAt", "updated_at"),
        ],
    },
    Entity {
        name: "context",
        relation: "thread_contexts_text",
        fields: &[
            ("id", "id"),
            ("key", "key"),
            ("threadId", "thread_id"),
            ("status", "status"),
            ("content", "content"),
            ("createdAt", "created_at"),
            ("updatedAt", "updated_at"),
        ],
    },
    Entity {
        name: "item",
        relation: "thread_items_text",
        fields: &[
            ("id", "id"),
            ("type", "type"),
            ("createdAt", "created_at"),
            ("status", "status"),
            ("channel", "channel"),
            ("content", "content"),
            ("role", "role"),
            // The links of EK §9.
            ("threadId", "thread_id"),
            ("contextId", "context_id"),
        ],
    },
    Entity {
        name: "execution",
        relation: "thread_executions_text",
        fields: &[
            ("id", "id"),
            ("threadId", "thread_id"),
            ("contextId", "context_id"),
            ("triggerItemId", "trigger_item_id"),
            ("reactionItemId", "reaction_item_id"),
            ("workflowRunId", "workflow_run_id"),
            ("status", "status"),
            ("createdAt", "created_at"),
            ("updatedAt", "updated_at"),
        ],
    },
    Entity {
        name: "step",
        relation: "thread_steps_text",
        fields: &[
            ("id", "id"),
            ("executionId", "execution_id"),
            ("iteration", "iteration"),
            ("status", "status"),
            ("eventId", "event_id"),
            ("toolCalls", "tool_calls"),
            ("toolExecutionResults", "tool_execution_results"),
            ("continueLoop", "continue_loop"),
            ("errorText", "error_text"),
            ("createdAt", "created_at"),
            ("updatedAt", "updated_at"),
        ],
    },
    Entity {
        name: "part",
        relation: "thread_parts_text",
        fields: &[
            ("key", "key"),
            ("stepId", "step_id"),
            ("idx", "idx"),
            ("type", "type"),
            ("part", "part"),
            ("updatedAt", "updated_at"),
        ],
    },
];

/// The entities of a log by their name and id.
#[derive(Default)]
struct Entities {
    all: BTreeMap<(&'static str, String), Map<String, Value>>,
    context: Value,
    thread: Value,
}

impl Entities {
    fn of(records: &[Record]) -> Self {
        let mut entities = Self::default();
        for record in records {
            entities.fold(record);
        }
        entities.derive_contents();
        entities
    }

    fn fold(&mut self, record: &Record) {
        let event: Value = serde_json::from_str(&record.event.encode().unwrap()).unwrap();
        let at = json!(record.at);
        let kind = event["type"].as_str().unwrap();
        let (name, what) = kind.split_once('.').unwrap();
        match (name, what) {
            ("part", _) => self.part(&event, at),
            (_, "created") => self.create(&event, name),
            (_, "status.changed") => self.change(&event, name, at),
            ("chunk", _) => self.reset(&record.event),
            _ => {}
        }
    }

    fn create(&mut self, event: &Value, name: &str) {
        let name = ENTITIES.iter().find(|it| it.name == name).unwrap().name;
        let mut entity = event[name].as_object().unwrap().clone();
        let id = entity["id"].as_str().unwrap().to_owned();
        match name {
            "thread" => self.thread = entity["id"].clone(),
            "context" => self.context = entity["id"].clone(),
            "item" => {
                entity.insert("threadId".into(), self.thread.clone());
                entity.insert("contextId".into(), self.context.clone());
            }
            _ => {}
        }
        self.all.insert((name, id), entity);
    }

    fn change(&mut self, event: &Value, name: &str, at: Value) {
        let name = ENTITIES.iter().find(|it| it.name == name).unwrap().name;
        let id = event[format!("{name}Id")].as_str().unwrap().to_owned();
        let entity = self.all.get_mut(&(name, id)).unwrap();
        entity.insert("status".into(), event["to"].clone());
        entity.insert("updatedAt".into(), at);
        for field in [
            "toolCalls",
            "toolExecutionResults",
            "continueLoop",
            "errorText",
        ] {
            if let Some(value) = event.get(field) {
                entity.insert(field.into(), value.clone());
            }
        }
    }

    fn part(&mut self, event: &Value, at: Value) {
        let key = event["partKey"].as_str().unwrap().to_owned();
        let part = Map::from_iter([
            ("key".to_owned(), json!(key)),
            ("stepId".to_owned(), event["stepId"].clone()),
            ("idx".to_owned(), event["idx"].clone()),
            ("type".to_owned(), event["part"]["type"].clone()),
            ("part".to_owned(), event["part"].clone()),
            ("updatedAt".to_owned(), at),
        ]);
        self.all.insert(("part", key), part);
    }

    /// A reset voids the parts of its step.
    fn reset(&mut self, event: &Event) {
        if let Some((Some(step), Chunk::Marker(Marker::StepReset))) = event.chunk() {
            let step = json!(step);
            self.all
                .retain(|(name, _), entity| *name != "part" || entity["stepId"] != step);
        }
    }

    /// A reaction has the parts of its execution's steps as its content.
    fn derive_contents(&mut self) {
        let of = |name: &'static str| {
            let all = self.all.iter();
            all.filter(move |((it, _), _)| *it == name).map(|it| it.1)
        };
        let mut contents = Vec::new();
        for execution in of("execution") {
            let mut steps: Vec<_> = of("step")
                .filter(|step| step["executionId"] == execution["id"])
                .collect();
            steps.sort_by_key(|step| step["iteration"].as_u64());
            let mut content = Vec::new();
            for step in steps {
                let mut parts: Vec<_> = of("part")
                    .filter(|part| part["stepId"] == step["id"])
                    .collect();
                parts.sort_by_key(|part| part["idx"].as_u64());
                content.extend(parts.iter().map(|part| part["part"].clone()));
            }
            let reaction = execution["reactionItemId"].as_str().unwrap().to_owned();
            if !content.is_empty() {
                contents.push((reaction, Value::Array(content)));
            }
        }
        for (reaction, content) in contents {
            let item = self.all.get_mut(&("item", reaction)).unwrap();
            item.insert("content".into(), content);
        }
    }
}

/// The value of a column as JSON has it.
fn column(field: &str, value: ValueRef<'_>) -> Value {
    match (field, value) {
        (_, ValueRef::Null) => Value::Null,
        ("createdAt" | "updatedAt", value) => {
            let nanoseconds = i64::column_result(value).unwrap();
            json!(jiff::Timestamp::from_nanosecond(nanoseconds.into()).unwrap())
        }
        ("continueLoop", value) => json!(i64::column_result(value).unwrap() == 1),
        ("content" | "toolCalls" | "toolExecutionResults" | "part", value) => {
            serde_json::from_str(value.as_str().unwrap()).unwrap()
        }
        (_, ValueRef::Integer(number)) => json!(number),
        (_, value) => json!(value.as_str().unwrap()),
    }
}

fn rows(path: &Path, entity: &Entity) -> Vec<Map<String, Value>> {
    let conn = Connection::open(path).unwrap();
    let columns: Vec<&str> = entity.fields.iter().map(|(_, column)| *column).collect();
    let sql = format!("SELECT {} FROM {}", columns.join(", "), entity.relation);
    let mut select = conn.prepare(&sql).unwrap();
    let found = select.query_map([], |row| {
        let mut found = Map::new();
        for (place, (field, _)) in entity.fields.iter().enumerate() {
            let value = column(field, row.get_ref(place)?);
            if !value.is_null() {
                found.insert((*field).to_owned(), value);
            }
        }
        Ok(found)
    });
    found.unwrap().map(Result::unwrap).collect()
}

/// Commands that set the fields which the other scripts leave empty.
fn with_all_fields() -> Vec<Command> {
    let Command::Start {
        trigger: _,
        run,
        execution_id,
        reaction_item_id,
        step_id,
        ..
    } = start("full", Trigger::Waiting)
    else {
        unreachable!("a start is one");
    };
    let outcome = StepOutcome {
        tool_calls: Some(json!([{"toolCallId": "c1"}]).into()),
        tool_execution_results: Some(json!([{"toolCallId": "c1", "output": 1}]).into()),
        continue_loop: Some(true),
        ..StepOutcome::default()
    };
    vec![
        Command::Start {
            trigger: Trigger::New(NewItem {
                channel: Some("web".into()),
                ..item("full")
            }),
            run,
            execution_id,
            reaction_item_id,
            step_id,
            workflow_run_id: Some("workflow".into()),
        },
        respond(),
        tool_result(),
        Command::ImportStep {
            outcome,
            next: Some("full-step-1".into()),
        },
        respond(),
        Command::End {
            ending: Ending::Failed(Interruption::new("error", "it broke")),
        },
    ]
}

#[tokio::test]
async fn every_field_of_the_entities_has_the_value_of_the_log() {
    let mut seen = BTreeSet::new();
    for commands in [script(), script_of_answers(), with_all_fields()] {
        let (_directory, path) = place();
        let store = open(&path);
        let author: Author = written(&store, "t", commands).await;
        let shared: Arc<dyn Store> = store.clone();
        let records = read_all(&shared, &author).await;
        let mut entities = Entities::of(&records);
        // A thread changes with each append.
        let thread = entities.all.get_mut(&("thread", "t".into())).unwrap();
        thread.insert("updatedAt".into(), json!(records.last().unwrap().at));

        for entity in &ENTITIES {
            let found = rows(&path, entity);
            let of_log = entities.all.keys().filter(|(name, _)| *name == entity.name);
            assert_eq!(found.len(), of_log.count(), "{}", entity.name);
            for row in found {
                let id = row.get("id").or(row.get("key")).unwrap().as_str().unwrap();
                let logged = &entities.all[&(entity.name, id.to_owned())];
                for (field, _) in entity.fields {
                    let expected = logged.get(*field).filter(|value| !value.is_null());
                    assert_eq!(row.get(*field), expected, "{} {id}, {field}", entity.name);
                    if expected.is_some() {
                        seen.insert((entity.name, *field));
                    }
                }
            }
        }
    }
    // A log that lacks a field shows nothing about its column. No command sets the content of a context.
    for entity in &ENTITIES {
        for (field, _) in entity.fields {
            let is_unused = (entity.name, *field) == ("context", "content");
            assert!(
                is_unused != seen.contains(&(entity.name, *field)),
                "{} {field}",
                entity.name
            );
        }
    }
}

async fn read_all(store: &Arc<dyn Store>, author: &Author) -> Vec<Record> {
    let read = store.read(&author.thread, Seq::ZERO, 1_000, Filter::All);
    let page = read.await.unwrap();
    page.into_iter().map(|logged| logged.record).collect()
}

#[tokio::test]
async fn items_of_every_kind_are_rows_with_their_values() {
    let (_directory, path) = place();
    let store = open(&path);
    let mut author: Author = written(&store, "t", vec![]).await;
    let items = item_kinds();
    for events in item_events(&items).chunks(100) {
        let append = author.append_with(events.to_vec());
        author.append(append).await.unwrap();
    }
    let found = rows(&path, &ENTITIES[2]);
    let by_id: BTreeMap<_, _> = found
        .iter()
        .map(|row| (row["id"].as_str().unwrap(), row))
        .collect();
    assert_eq!((by_id.len(), found.len()), (items.len(), items.len()));
    for item in &items {
        let mut expected = serde_json::to_value(item).unwrap();
        expected["threadId"] = "t".into();
        expected["contextId"] = "t-context".into();
        assert_eq!(&Value::Object(by_id[item.id.as_str()].clone()), &expected);
    }
}

#[tokio::test]
async fn a_context_has_the_content_of_its_event() {
    let (_directory, path) = place();
    let store: Arc<dyn Store> = open(&path);
    let mut records = first(NewThread::new("t", Some("t")), jiff::Timestamp::UNIX_EPOCH);
    for record in &mut records {
        let mut event = record.event().clone();
        if let Event::ContextCreated { context } = &mut event {
            context.content = Some(json!({"plan": ["a", 1.5]}).into());
            context.key = Some("t".into());
        }
        *record = NewRecord::new(record.at, event).unwrap();
    }
    store
        .get_or_create(&"acme".into(), records, None, None)
        .await
        .unwrap();
    let contexts = rows(&path, &ENTITIES[1]);
    assert_eq!(contexts[0]["content"], json!({"plan": ["a", 1.5]}));
    assert_eq!(contexts[0]["threadId"], "t");
}

#[tokio::test]
async fn six_entities_are_tables_and_the_traces_are_views() {
    let (_directory, path) = place();
    open(&path).close().await.unwrap();
    let conn = Connection::open(&path).unwrap();
    let kind = |name: &str| -> String {
        let sql = "SELECT type FROM sqlite_schema WHERE name = ?1";
        conn.query_row(sql, [name], |row| row.get(0)).unwrap()
    };
    for name in [
        "threads",
        "contexts",
        "items",
        "executions",
        "steps",
        "parts",
    ] {
        assert_eq!(kind(&format!("thread_{name}")), "table", "{name}");
    }
    for name in ["events", "runs", "spans"] {
        assert_eq!(kind(&format!("thread_trace_{name}")), "view", "{name}");
    }
}
