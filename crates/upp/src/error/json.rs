//! An error as JSON (UPP §14).

use super::{Code, Error, Modality};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

const NAME: &str = "UPPError";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json<'a> {
    #[serde(default)]
    name: Cow<'a, str>,
    message: Cow<'a, str>,
    code: Code,
    provider: Cow<'a, str>,
    modality: Modality,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status_code: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cause: Option<Cow<'a, str>>,
}

/// The text of a cause that was read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Told(String);

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = Json {
            name: NAME.into(),
            message: self.message.as_str().into(),
            code: self.code,
            provider: self.provider.as_str().into(),
            modality: self.modality,
            status_code: self.status,
            cause: self.cause.as_ref().map(|cause| cause.to_string().into()),
        };
        json.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        Ok(Self {
            code: json.code,
            message: json.message.into_owned(),
            provider: json.provider.into_owned(),
            modality: json.modality,
            status: json.status_code,
            retry_after: None,
            cause: json.cause.map(|cause| Told(cause.into_owned()).into()),
        })
    }
}
