/** The entries of all pages of a list. */
export async function* paged<Page extends { next?: unknown }, Entry>(
  read: (cursor: NonNullable<Page["next"]> | undefined) => Promise<Page>,
  entries: (page: Page) => Entry[],
): AsyncGenerator<Entry, void, undefined> {
  let cursor: NonNullable<Page["next"]> | undefined;
  do {
    const page = await read(cursor);
    yield* entries(page);
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
}
