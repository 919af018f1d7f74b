/** The output of a command as it is kept until its end: the beginning of each stream, and a digest of all of it. */
import { createHash, type Hash } from 'node:crypto';
import type { OutputStream } from '../../terminal/frames.js';
import type { ExecSink } from './exec-sink.js';

/** Bytes of each stream that are kept; more is counted only. */
export const KEPT = 1024 * 1024;

interface Channel {
  readonly parts: Buffer[];
  readonly hash: Hash;
  length: number;
}

const channel = (): Channel => ({ parts: [], hash: createHash('sha256'), length: 0 });

export class KeptOutput implements ExecSink {
  private readonly channels: Readonly<Record<OutputStream, Channel>> = { out: channel(), err: channel() };

  output(stream: OutputStream, bytes: Buffer, done: () => void): void {
    const { parts, hash, length } = this.channels[stream];
    hash.update(bytes);
    // A copy, so that a small part does not hold what it was cut from.
    if (length < KEPT) parts.push(Buffer.from(bytes.subarray(0, KEPT - length)));
    this.channels[stream].length += bytes.length;
    done();
  }

  async end(): Promise<void> {}

  /** As much of it as is kept. */
  bytes(stream: OutputStream): Buffer {
    return Buffer.concat(this.channels[stream].parts);
  }

  text(stream: OutputStream): string {
    return this.bytes(stream).toString('utf8');
  }

  /** How much there was. */
  length(stream: OutputStream): number {
    return this.channels[stream].length;
  }

  get truncated(): boolean {
    return this.channels.out.length > KEPT || this.channels.err.length > KEPT;
  }

  /** The same for the same output, whether all of it is kept or not. */
  get digest(): string {
    return (['out', 'err'] as const).map((stream) => this.channels[stream].hash.copy().digest('hex')).join(' ');
  }
}
