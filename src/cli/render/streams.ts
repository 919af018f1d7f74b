/** Standard input and output, as commands use them. */
import type { Readable } from 'node:stream';

export type InputStream = Readable & {
  readonly isTTY?: boolean;
  readonly fd?: number;
  setRawMode?(isRaw: boolean): unknown;
};

export type OutputStream = NodeJS.WritableStream & {
  readonly isTTY?: boolean;
  readonly fd?: number;
  readonly columns?: number;
  readonly rows?: number;
};
