//! Finds the boundaries of WebSocket frames.

/// Bytes of the longest head of a frame.
const MAX_HEAD: usize = 14;
/// Maximum payload of a control frame, in bytes (RFC 6455, section 5.5).
const MAX_CONTROL: u64 = 125;

/// Follows the frames in a client's bytes. Stores only the head of one frame.
#[derive(Debug, Default)]
pub(super) struct Frames {
    head: [u8; MAX_HEAD],
    /// Number of bytes of the head so far.
    n_head: usize,
    /// How much of the payload is missing, once the head is complete.
    left: Option<u64>,
    /// Whether the first frame of a message has started and its last frame has not ended.
    in_message: bool,
}

/// One finding in a piece of the byte stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// This many payload bytes of a message.
    Payload(usize),
    /// The end of a message.
    MessageEnd,
    /// A control frame that is longer than the protocol allows.
    LongControl,
}

impl Frames {
    /// Whether a frame or a message has started and not ended.
    pub(super) fn is_open(&self) -> bool {
        self.in_message || self.n_head > 0
    }

    /// Reads a piece of the stream.
    pub(super) fn read(&mut self, mut bytes: &[u8], mut seen: impl FnMut(Seen)) {
        loop {
            let Some(left) = self.left else {
                let Some((byte, rest)) = bytes.split_first() else {
                    return;
                };
                bytes = rest;
                self.head_byte(*byte);
                if self.is_control() && self.left.is_some_and(|left| left > MAX_CONTROL) {
                    seen(Seen::LongControl);
                }
                continue;
            };
            if left > 0 && bytes.is_empty() {
                return;
            }
            let n = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
            bytes = bytes.get(n..).unwrap_or_default();
            let left = left - n as u64;
            self.left = Some(left);
            let is_control = self.is_control();
            if !is_control {
                self.in_message = true;
                if n > 0 {
                    seen(Seen::Payload(n));
                }
            }
            if left == 0 {
                let is_final = self.first() & 0x80 != 0;
                if is_final && !is_control {
                    self.in_message = false;
                    seen(Seen::MessageEnd);
                }
                self.n_head = 0;
                self.left = None;
            }
        }
    }

    fn head_byte(&mut self, byte: u8) {
        if let Some(place) = self.head.get_mut(self.n_head) {
            *place = byte;
            self.n_head += 1;
        }
        let [_, lengths, ..] = self.head;
        let n_length = match lengths & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let n_mask = if lengths & 0x80 == 0 { 0 } else { 4 };
        if self.n_head < 2 || self.n_head < 2 + n_length + n_mask {
            return;
        }
        let length = self.head.get(2..2 + n_length).unwrap_or_default();
        self.left = Some(match length {
            [] => u64::from(lengths & 0x7f),
            _ => length
                .iter()
                .fold(0, |length, byte| length << 8 | u64::from(*byte)),
        });
    }

    fn first(&self) -> u8 {
        let [first, ..] = self.head;
        first
    }

    fn is_control(&self) -> bool {
        self.first() & 0x08 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A masked frame.
    fn frame(first: u8, payload: usize) -> Vec<u8> {
        let mut frame = vec![first];
        if let Ok(short @ 0..=125) = u8::try_from(payload) {
            frame.push(0x80 | short);
        } else if let Ok(middle) = u16::try_from(payload) {
            frame.push(0xfe);
            frame.extend(middle.to_be_bytes());
        } else {
            frame.push(0xff);
            frame.extend((payload as u64).to_be_bytes());
        }
        frame.extend([1, 2, 3, 4]);
        frame.resize(frame.len() + payload, 0x8f);
        frame
    }

    /// The payload of each message, and whether something is open at the end.
    fn messages(bytes: &[u8], piece: usize) -> (Vec<usize>, bool) {
        let (mut frames, mut done, mut open) = (Frames::default(), Vec::new(), 0);
        for piece in bytes.chunks(piece) {
            frames.read(piece, |seen| match seen {
                Seen::Payload(n) => open += n,
                Seen::MessageEnd => done.push(std::mem::take(&mut open)),
                Seen::LongControl => panic!("no control frame is long"),
            });
        }
        (done, frames.is_open())
    }

    #[test]
    fn messages_are_found_however_their_bytes_are_cut() {
        let bytes = [
            frame(0x81, 5),
            frame(0x01, 200),
            frame(0x89, 125),
            frame(0x00, 70_000),
            frame(0x80, 0),
            frame(0x82, 0),
            frame(0x88, 2),
        ]
        .concat();
        for piece in [1, 2, 7, 1_000, bytes.len()] {
            assert_eq!(
                messages(&bytes, piece),
                (vec![5, 70_200, 0], false),
                "{piece}"
            );
        }
    }

    #[test]
    fn an_unfinished_message_is_open_between_its_frames() {
        assert!(messages(&frame(0x01, 3), 64).1);
        assert!(messages(&frame(0x81, 3)[..3], 64).1);
        assert!(messages(&[frame(0x01, 3), frame(0x89, 0)].concat(), 64).1);
        assert!(!messages(&[frame(0x01, 3), frame(0x80, 0)].concat(), 64).1);
    }

    #[test]
    fn a_control_frame_that_claims_too_much_is_found() {
        let mut found = Vec::new();
        Frames::default().read(&frame(0x89, 126)[..8], |seen| found.push(seen));
        assert_eq!(found, [Seen::LongControl]);
    }
}
