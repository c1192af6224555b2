-- The words of texts and titles. The text itself is in the log alone: a row has the number of its event, or, for a
-- title, that of its thread and 2^62. `scope` has two words: the tenant's and the thread's.
CREATE VIRTUAL TABLE thread_words USING fts5 (
    scope, text, content = '', tokenize = 'unicode61 remove_diacritics 2');
-- A text that is deleted leaves the index at once.
INSERT INTO thread_words (thread_words, rank) VALUES ('secure-delete', 1);

-- The event that wrote a part last. Older parts get theirs when the index is built.
ALTER TABLE thread_parts ADD COLUMN seq INTEGER;
