//! Chat Completions in the grid. (Fixtures to follow.)
