/** Reads the data types of the SSH protocol (RFC 4251, section 5) that key files are made of. */
import type { Fault } from '../kernel/fault.js';

export class SshReader {
  private readonly bytes: Buffer;
  private readonly fail: (why: string) => Fault;
  private offset = 0;

  /** @param fail makes the fault that is thrown when the bytes end too early */
  constructor(bytes: Buffer, fail: (why: string) => Fault) {
    this.bytes = bytes;
    this.fail = fail;
  }

  uint32(): number {
    return this.take(4).readUInt32BE();
  }

  /** A byte string with its length in front. */
  string(): Buffer {
    return this.take(this.uint32());
  }

  /** A string of ASCII characters. */
  text(): string {
    return this.string().toString('latin1');
  }

  /** Everything that is left. */
  rest(): Buffer {
    return this.take(this.bytes.length - this.offset);
  }

  private take(length: number): Buffer {
    if (length > this.bytes.length - this.offset) throw this.fail('is cut short');
    const from = this.offset;
    this.offset += length;
    return this.bytes.subarray(from, this.offset);
  }
}
