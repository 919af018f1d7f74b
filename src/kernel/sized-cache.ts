/** A cache of values that never change, limited by their total size. The value that was used longest ago leaves first. */
export class SizedCache<Key, Value> {
  private readonly entries = new Map<Key, { readonly value: Value; readonly size: number }>();
  private readonly limit: number;
  private size = 0;

  /** @param limit largest total size, in the unit of `set` */
  constructor(limit: number) {
    this.limit = limit;
  }

  get(key: Key): Value | undefined {
    const entry = this.entries.get(key);
    if (entry === undefined) return undefined;
    this.entries.delete(key);
    this.entries.set(key, entry);
    return entry.value;
  }

  /** Keeps a value, unless it alone is larger than the limit. The key must be new. */
  set(key: Key, value: Value, size: number): void {
    if (size > this.limit) return;
    this.entries.set(key, { value, size });
    this.size += size;
    for (const [oldest, { size: freed }] of this.entries) {
      if (this.size <= this.limit) return;
      this.entries.delete(oldest);
      this.size -= freed;
    }
  }
}
