/** Cuts a stream of bytes into whole lines. */

/** A longer line is cut, so that one without end takes no memory without end. */
const LONGEST_LINE = 64 * 1024;
const LINE_FEED = 0x0a;

export class LineSplitter {
  /** What is left without a line feed, and its length. */
  private parts: Buffer[] = [];
  private length = 0;

  /** The lines that are whole by now, without their line feeds. */
  push(bytes: Buffer): readonly Buffer[] {
    if (!bytes.includes(LINE_FEED) && this.length + bytes.length <= LONGEST_LINE) {
      this.keep(bytes);
      return [];
    }
    const lines: Buffer[] = [];
    let text = Buffer.concat([...this.parts, bytes]);
    for (let end = text.indexOf(LINE_FEED); end >= 0; end = text.indexOf(LINE_FEED)) {
      lines.push(...cut(text.subarray(0, end)));
      text = text.subarray(end + 1);
    }
    const tail = cut(text);
    const rest = tail.at(-1) ?? text;
    lines.push(...tail.slice(0, -1));
    this.parts = [];
    this.length = 0;
    this.keep(rest);
    return lines;
  }

  /** What came behind the last line feed; null when nothing did. */
  end(): Buffer | null {
    const rest = Buffer.concat(this.parts);
    this.parts = [];
    this.length = 0;
    return rest.length === 0 ? null : rest;
  }

  /** A copy, so that a few bytes do not hold the whole chunk. */
  private keep(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.parts.push(Buffer.from(bytes));
    this.length += bytes.length;
  }
}

/** Pieces that are not too long, at least one. */
function cut(line: Buffer): readonly Buffer[] {
  const pieces = Math.max(1, Math.ceil(line.length / LONGEST_LINE));
  return Array.from({ length: pieces }, (_, index) => line.subarray(index * LONGEST_LINE, (index + 1) * LONGEST_LINE));
}
