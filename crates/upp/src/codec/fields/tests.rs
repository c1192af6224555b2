use super::*;

#[derive(Debug, Default)]
struct Some<'a> {
    a: Field<'a>,
    n: Count,
    inner: Object<Inner>,
    list: Objects<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    n: Count,
}

impl<'de> Fields<'de> for Some<'de> {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "a" => take(map, &mut self.a),
            "n" => take(map, &mut self.n),
            "inner" => take(map, &mut self.inner),
            "list" => take(map, &mut self.list),
            _ => skip(map),
        }
    }
}

impl<'de> Fields<'de> for Inner {
    fn field<A: MapAccess<'de>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "n" => take(map, &mut self.n),
            _ => skip(map),
        }
    }
}

fn some(text: &str) -> Some<'_> {
    read(text).unwrap().unwrap()
}

#[test]
fn of_two_fields_with_one_name_the_last_counts() {
    let read = some(r#"{"a": "1", "inner": {"n": 1}, "\u0061": "3\n", "inner": {"n": 2}}"#);
    assert_eq!(read.a.text(), std::option::Option::Some("3\n"));
    assert_eq!(read.inner.0.unwrap().n.0, std::option::Option::Some(2));
}

#[test]
fn a_field_of_another_type_counts_as_absent() {
    for other in [
        "null",
        "true",
        "-1",
        "1.5",
        "\"x\"",
        "[[], 1]",
        "{\"x\": {}}",
    ] {
        let text = format!(r#"{{"n": {other}, "inner": {other}, "list": {other}, "a": ""}}"#);
        let read = some(&text);
        assert!(read.n.0.is_none() && read.a.text().is_none(), "{other}");
        assert!(
            read.inner.0.is_none_or(|inner| inner.n.0.is_none()),
            "{other}"
        );
        let none = |list: &[Inner]| list.iter().all(|it| it.n.0.is_none());
        assert!(none(&read.list.0), "{other}");
        let value: Value = serde_json::from_str(other).unwrap();
        let text = format!(r#"{{"a": {other}}}"#);
        let read = some(&text);
        assert_eq!(read.a.to_value().unwrap_or_default(), value);
    }
    let read = some(r#"{"list": [{"n": 1}, 7, {"n": 2}]}"#);
    let counts: Vec<_> = read.list.0.iter().map(|it| it.n.0).collect();
    assert_eq!(counts, [Option::Some(1), None, Option::Some(2)]);
    assert!(super::read::<Inner>("[1]").unwrap().is_none());
}

#[test]
fn what_is_no_json_is_refused() {
    let deep = format!("{{\"a\":{}", "[".repeat(200));
    for text in ["", "{", "{\"a\" 1}", "[1,]", "{} {}", "nul", &deep] {
        assert!(super::read::<Some<'_>>(text).is_err(), "{text}");
    }
}
