//! The numbers of rows, page by page. A value can be large, so each row is read alone.

use super::connection::Conn;
use super::value::{Param, get};
use store::StoreError;
use tokio_postgres::types::Type;

/// Numbers that are read together.
const PAGE: i64 = 1000;

/// The numbers that a statement finds after `$1`, at most `$2` of them.
pub(super) struct Numbers<'a> {
    conn: &'a Conn,
    sql: &'a str,
    /// The value `$3`.
    of: Option<Param<'a>>,
    after: i64,
    page: std::vec::IntoIter<i64>,
}

impl<'a> Numbers<'a> {
    pub(super) fn of(conn: &'a Conn, sql: &'a str, of: Option<Param<'a>>) -> Self {
        Self {
            conn,
            sql,
            of,
            after: i64::MIN,
            page: Vec::new().into_iter(),
        }
    }

    pub(super) async fn next(&mut self) -> Result<Option<i64>, StoreError> {
        if self.page.len() == 0 {
            let page: [Param<'_>; 2] = [(&self.after, Type::INT8), (&PAGE, Type::INT8)];
            let values: Vec<Param<'_>> = page.into_iter().chain(self.of.clone()).collect();
            let rows = self.conn.query(self.sql, &values).await?;
            let numbers: Vec<i64> = rows
                .iter()
                .map(|row| get(row, 0))
                .collect::<Result<_, _>>()?;
            self.after = numbers.last().copied().unwrap_or(self.after);
            self.page = numbers.into_iter();
        }
        Ok(self.page.next())
    }
}
