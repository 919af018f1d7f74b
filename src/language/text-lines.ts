/** Lines and columns of the offsets in a text. */

/** Both start at 1; a column counts UTF-16 code units, as editors do. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface TextLines {
  /** The position of an offset; one past the end is the end. */
  positionAt(offset: number): Position;
}

export function textLines(text: string): TextLines {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return {
    positionAt(offset) {
      const within = Math.max(0, Math.min(offset, text.length));
      let low = 0;
      let high = starts.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if ((starts[middle] ?? 0) <= within) low = middle;
        else high = middle - 1;
      }
      return { line: low + 1, column: within - (starts[low] ?? 0) + 1 };
    },
  };
}
