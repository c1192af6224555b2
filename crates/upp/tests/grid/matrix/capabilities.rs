//! What a provider says that it can, it can; what it says that it can't is not sent (UPP §12).

use super::*;
use loomline_upp::{
    Capabilities, Code, Llm, LlmOptions, Media, MediaSource, Messages, Model, UserContent,
};

/// Which media each provider takes: images, documents, video, audio.
const TAKES: [(&str, [bool; 4]); 16] = [
    ("anthropic", [true, true, false, false]),
    ("xai messages", [true, false, false, false]),
    ("openai responses", [true, true, false, false]),
    ("xai responses", [true, false, false, false]),
    ("openrouter responses", [true, true, true, true]),
    ("host responses", [true, true, true, true]),
    ("openai completions", [true, true, false, true]),
    ("openrouter completions", [true, true, true, true]),
    ("xai completions", [true, false, false, false]),
    ("groq", [true, false, false, false]),
    ("cerebras", [false, false, false, false]),
    ("moonshot", [true, false, true, false]),
    ("mistral", [true, false, false, false]),
    ("compatible completions", [true, false, false, false]),
    ("google", [true, true, true, true]),
    ("ollama", [true, false, false, false]),
];

const BYTES: &str = "QUJDREVG";

fn shown(kind: usize) -> UserContent {
    let media = |mime_type: &str| {
        let source = MediaSource::Base64 {
            data: BYTES.to_owned(),
        };
        Media::new(source, mime_type)
    };
    match kind {
        0 => UserContent::Image(media("image/png")),
        1 => UserContent::Document(media("application/pdf")),
        2 => UserContent::Video(media("video/mp4")),
        _ => UserContent::Audio(media("audio/wav")),
    }
}

fn media_of(can: Capabilities) -> [bool; 4] {
    [
        can.image_input,
        can.document_input,
        can.video_input,
        can.audio_input,
    ]
}

#[test]
fn every_provider_declares_what_its_models_can() {
    let declared: Vec<(&str, [bool; 4])> = all()
        .iter()
        .map(|entry| (entry.name, media_of((entry.codec)().capabilities())))
        .collect();
    assert_eq!(declared, TAKES);
    for entry in all() {
        let can = (entry.codec)().capabilities();
        assert!(can.streaming && can.tools && can.structured_output);
        let bound = (entry.provider)(ProviderConfig::default());
        assert_eq!(bound.capabilities(), can, "{}", entry.name);
    }
}

#[test]
fn what_is_known_of_a_model_wins_over_what_its_provider_declares() {
    for entry in all() {
        let known = ProviderConfig {
            capabilities: Some(Capabilities::default()),
            ..ProviderConfig::default()
        };
        let bound = (entry.provider)(known);
        assert_eq!(bound.capabilities(), Capabilities::default());
        let mut options = LlmOptions::new(Arc::new(bound));
        options.tools = vec![tool()];
        let refused = Llm::new(options).unwrap_err();
        assert_eq!(refused.code, Code::InvalidRequest, "{}", entry.name);
    }
}

#[tokio::test]
async fn media_that_are_declared_are_sent_and_others_are_refused_before_anything_is() {
    let (server, url) = Refusing::start(503, "").await;
    for (entry, (_, takes)) in all().iter().zip(TAKES) {
        let model = Arc::new((entry.provider)(config(&url)));
        let llm = Llm::new(LlmOptions::new(model)).unwrap();
        for (kind, takes) in takes.into_iter().enumerate() {
            let answer = llm.generate(Messages::new(), [shown(kind)]).await;
            let arrived = server.take();
            let what = format!("{}, {:?}", entry.name, shown(kind));
            let code = answer.unwrap_err().code;
            if takes {
                assert_eq!(code, Code::ProviderError, "{what}");
                assert!(arrived[0].body.contains(BYTES), "{what}");
            } else {
                assert_eq!((code, arrived.len()), (Code::InvalidRequest, 0), "{what}");
            }
        }
    }
}

#[test]
fn every_provider_is_shown_tools_structure_and_instructions() {
    for entry in all() {
        let mut asked = ask("hi");
        asked.system = Some("Speak like a pirate.".into());
        asked.tools = [tool()].into();
        let with_tools = (entry.codec)().encode(&asked).unwrap().body;
        for word in [
            "Speak like a pirate.",
            "weather",
            "Tells the weather.",
            "town",
        ] {
            assert!(with_tools.contains(word), "{}: {with_tools}", entry.name);
        }
        assert!(!with_tools.contains("degrees"), "{}", entry.name);
        let mut asked = ask("hi");
        asked.structure = Some(Arc::new(structure()));
        let structured = (entry.codec)().encode(&asked).unwrap().body;
        assert!(structured.contains("degrees"), "{}", entry.name);
    }
}

#[test]
fn every_provider_passes_on_parameters_it_does_not_know() {
    let strange = json!({"made_up": {"x": [1, null, "é"]}, "temperature": 0.25});
    for entry in all() {
        let mut asked = ask("hi");
        asked.params = Arc::new(strange.as_object().cloned().unwrap());
        let body = (entry.codec)().encode(&asked).unwrap().body;
        let body: Value = serde_json::from_str(&body).unwrap();
        // Two formats have a place of their own for parameters.
        let place = match entry.name {
            "google" => &body["generationConfig"],
            "ollama" => &body["options"],
            _ => &body,
        };
        let kept = [&body, place].map(|place| place["made_up"] == strange["made_up"]);
        assert!(kept.contains(&true), "{}: {body}", entry.name);
        assert_eq!(place["temperature"], 0.25, "{}: {body}", entry.name);
    }
}

#[test]
fn no_provider_is_sent_a_parameter_that_nobody_gave() {
    for entry in all() {
        let body = (entry.codec)().encode(&ask("hi")).unwrap().body;
        for word in ["temperature", "top_p", "topP", "top_k", "seed", "stop"] {
            let word = format!("\"{word}\"");
            assert!(!body.contains(&word), "{}: {body}", entry.name);
        }
    }
}
