use super::*;
use serde_json::json;

#[test]
fn the_twelve_codes_have_the_spelling_of_the_specification() {
    let words = Code::ALL.map(|code| serde_json::to_value(code).unwrap());
    let names = Code::ALL.map(|code| json!(code.as_str()));
    assert_eq!(words, names);
    assert_eq!(words[2], "CONTEXT_LENGTH_EXCEEDED");
    for (code, word) in Code::ALL.into_iter().zip(words) {
        assert_eq!(serde_json::from_value::<Code>(word).unwrap(), code);
    }
}

#[test]
fn modalities_have_the_spelling_of_the_specification() {
    for modality in [
        Modality::Llm,
        Modality::Embedding,
        Modality::Image,
        Modality::Audio,
        Modality::Video,
    ] {
        assert_eq!(serde_json::to_value(modality).unwrap(), modality.as_str());
    }
}

#[test]
fn an_error_has_the_json_of_the_specification_and_comes_back() {
    let mut error = Error::new(Code::RateLimited, "openai", "too fast")
        .with_modality(Modality::Image)
        .caused_by(std::io::Error::other("the socket"));
    error.status = Some(429);
    let json = serde_json::to_value(&error).unwrap();
    assert_eq!(
        json,
        json!({"name": "UPPError", "message": "too fast", "code": "RATE_LIMITED", "provider": "openai",
            "modality": "image", "statusCode": 429, "cause": "the socket"})
    );
    let read: Error = serde_json::from_value(json.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), json);
    let bare = serde_json::to_value(Error::new(Code::Timeout, "p", "slow")).unwrap();
    assert_eq!(
        bare,
        json!({"name": "UPPError", "message": "slow", "code": "TIMEOUT", "provider": "p", "modality": "llm"})
    );
}

#[test]
fn an_error_of_unknown_code_is_refused() {
    let json = json!({"message": "x", "code": "OOPS", "provider": "p", "modality": "llm"});
    let error = serde_json::from_value::<Error>(json).unwrap_err();
    assert!(error.to_string().contains("OOPS"), "{error}");
}

#[test]
fn the_line_names_code_provider_modality_and_status() {
    let mut error = Error::new(Code::RateLimited, "openai", "too fast");
    assert_eq!(
        error.line(),
        "UPPError [RATE_LIMITED]: too fast (provider: openai, modality: llm)"
    );
    error.status = Some(429);
    assert!(error.line().ends_with("modality: llm, status: 429)"));
}
