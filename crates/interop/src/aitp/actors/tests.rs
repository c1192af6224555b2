use super::*;
use proptest::prelude::*;

const DECISIONS: &str = "https://aitp.dev/capabilities/aitp-02-decisions/v1.0.0/schema.json";

fn metadata(actors: Value) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("actors".to_owned(), actors);
    metadata
}

#[test]
fn all_shapes_of_actors_become_the_same() {
    let list = json!([{"id": "a.near", "capabilities": [{"schema": DECISIONS}]}]);
    let shapes = [
        list.clone(),
        json!([{"id": "a.near", "capabilities": [{"$schema": DECISIONS}]}]),
        json!([{"id": "a.near", "capabilities": [DECISIONS]}]),
        json!([{"id": "a.near", "capabilities": [{"family": "aitp-02-decisions", "version": "1.0.0"}]}]),
        list.to_string().into(),
        json!([{"id": "a.near", "capabilities": [DECISIONS, DECISIONS]}])
            .to_string()
            .into(),
    ];
    for shape in shapes {
        let read = ThreadMetadata::read(&metadata(shape)).unwrap();
        assert_eq!(read.actors, [Actor::new("a.near", [DECISIONS])]);
        assert_eq!(read.write(), metadata(list.clone()));
    }
}

#[test]
fn other_members_of_an_actor_and_of_the_metadata_stay() {
    let actor = json!({"id": "a", "client_id": "app", "capabilities": [], "name": {"given": "A"}});
    let mut given = metadata(json!([actor]));
    given.insert("colour".to_owned(), "red".into());
    given.insert("parent_id".to_owned(), Value::Null);
    let read = ThreadMetadata::read(&given).unwrap();
    assert_eq!(read.actors.first().map(Actor::write), Some(actor));
    assert_eq!(read.parent_id, None);
    given.remove("parent_id");
    assert_eq!(Value::Object(read.write()), Value::Object(given));
}

#[test]
fn what_is_wrong_is_said_where_it_stands() {
    let long = "x".repeat(MAX_ID + 1);
    let many: Vec<Value> = (0..=MAX_ACTORS)
        .map(|n| json!({"id": n.to_string()}))
        .collect();
    for (actors, pointer) in [
        (json!({}), "/actors"),
        (json!("not json"), "/actors"),
        (json!("{}"), "/actors"),
        (json!(many), "/actors"),
        (json!([7]), "/actors/0"),
        (json!([{"capabilities": []}]), "/actors/0/id"),
        (json!([{"id": ""}]), "/actors/0/id"),
        (json!([{"id": long}]), "/actors/0/id"),
        (json!([{"id": "a"}, {"id": "a"}]), "/actors/1/id"),
        (json!([{"id": "a", "client_id": 7}]), "/actors/0/client_id"),
        (
            json!([{"id": "a", "capabilities": "x"}]),
            "/actors/0/capabilities",
        ),
        (
            json!([{"id": "a", "capabilities": [{}]}]),
            "/actors/0/capabilities/0",
        ),
        (
            json!([{"id": "a", "capabilities": ["u", {"$schema": 1}]}]),
            "/actors/0/capabilities/1/$schema",
        ),
        (
            json!([{"id": "a", "capabilities": [{"family": "aitp-99", "version": "1.0.0"}]}]),
            "/actors/0/capabilities/0",
        ),
    ] {
        let error = ThreadMetadata::read(&metadata(actors)).unwrap_err();
        assert_eq!(error.pointer, pointer);
    }
}

#[test]
fn a_declared_version_reads_messages_of_its_major() {
    let actor = Actor::new("a", ["https://aitp.dev/v1/payments/schema.json", "urn:x"]);
    assert!(actor.reads(Family::Payments, FamilyVersion::read("0.1.0").unwrap()));
    assert!(actor.reads(Family::Payments, FamilyVersion::read("1.4.0").unwrap()));
    assert!(!actor.reads(Family::Payments, FamilyVersion::read("2.0.0").unwrap()));
    assert!(!actor.reads(Family::Decisions, FamilyVersion::V1));
}

#[test]
fn a_message_names_its_actor() {
    let read = |value: Value| read_message_actor(value.as_object().unwrap());
    assert_eq!(read(json!({"actor": "a"})), Ok(Some("a".to_owned())));
    assert_eq!(read(json!({"actor": null})), Ok(None));
    assert_eq!(read(json!({})), Ok(None));
    assert!(read(json!({"actor": {"id": "a"}})).is_err());
}

#[test]
fn an_actor_is_serialised_as_it_is_written() {
    let written = json!({"id": "a", "client_id": "app", "capabilities": [{"schema": DECISIONS}], "name": "A"});
    let actor = Actor::read(&written, "").unwrap();
    assert_eq!(json!(actor), written);
    assert_eq!(serde_json::from_value::<Actor>(written).unwrap(), actor);
    assert!(serde_json::from_value::<Actor>(json!({"id": ""})).is_err());
}

#[test]
fn other_members_never_stand_in_for_an_actors_own() {
    let mut actor = Actor::new("a", []);
    actor.extra.insert("id".to_owned(), "b".into());
    assert_eq!(actor.write()["id"], "a");
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(ids in prop::collection::btree_set("[a-z.]{1,9}", 0..6), urls in prop::collection::btree_set("[a-z:/]{1,20}", 0..4)) {
        let actors: Vec<Actor> = ids.iter().map(|id| Actor::new(id, urls.iter().map(String::as_str))).collect();
        let written = ThreadMetadata { actors: actors.clone(), ..ThreadMetadata::default() }.write();
        prop_assert_eq!(&ThreadMetadata::read(&written).unwrap().actors, &actors);
        let as_text = written.get("actors").map(|actors| actors.to_string().into());
        if let Some(text) = as_text {
            prop_assert_eq!(ThreadMetadata::read(&metadata(text)).unwrap().actors, actors);
        }
    }
}
