/** A random `Idempotency-Key`. */
export function newKey(): string {
  // `randomUUID` is absent in pages that were not loaded over HTTPS.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
