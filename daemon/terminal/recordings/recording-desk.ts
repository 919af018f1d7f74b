/** Takes what the thread that records is told to its recordings, and answers. */
import { isFault, messageOf, systemCodeOf } from '../../../src/kernel/fault.js';
import { ReceivedSlots } from '../output-slots.js';
import type { RecordingMaker } from './recording-maker.js';
import type {
  FromRecordingThread,
  RecordingAnswer,
  RecordingQuestion,
  ToldFault,
  ToRecordingThread,
} from './recording-messages.js';
import type { RecordingWriter, WriterEvents } from './recording-writer.js';

export interface RecordingDeskOptions {
  readonly maker: RecordingMaker;
  readonly say: (message: FromRecordingThread) => void;
}

export class RecordingDesk {
  private readonly options: RecordingDeskOptions;
  private readonly writers = new Map<number, RecordingWriter>();
  private readonly slots = new ReceivedSlots();
  /** Told in one message after all that has come. */
  private free: number[] = [];

  constructor(options: RecordingDeskOptions) {
    this.options = options;
  }

  take(message: ToRecordingThread): void {
    switch (message.do) {
      case 'ask':
        void this.reply(message.ask, message.question);
        return;
      case 'slot':
        this.slots.learn(message.slot, message.memory);
        return;
      case 'write':
        this.write(message);
        return;
      case 'resize':
        this.writers.get(message.id)?.resize(message.cols, message.rows);
        return;
      case 'mark':
        this.writers.get(message.id)?.mark(message.text);
    }
  }

  private write(message: Extract<ToRecordingThread, { readonly do: 'write' }>): void {
    const { id, slot, stream } = message;
    this.writers.get(id)?.write(stream, this.slots.read(message));
    if (slot === null) return;
    if (this.free.length === 0) setImmediate(() => this.tellFree());
    this.free.push(slot);
  }

  private tellFree(): void {
    const slots = this.free;
    this.free = [];
    this.options.say({ is: 'free', slots });
  }

  private async reply(ask: number, question: RecordingQuestion): Promise<void> {
    const { say } = this.options;
    try {
      say({ is: 'answer', ask, answer: await this.answer(question) });
    } catch (error) {
      say({ is: 'refused', ask, fault: toldFault(error) });
    }
  }

  private async answer(question: RecordingQuestion): Promise<RecordingAnswer> {
    const { maker } = this.options;
    const { id } = question;
    if (question.do === 'create' || question.do === 'recover') {
      const { writer, ...begun } = await maker[question.do](question.head, this.events(id));
      this.writers.set(id, writer);
      return begun;
    }
    const writer = this.writers.get(id);
    if (writer === undefined) throw new Error('there is no such recording');
    const end = question.do === 'close' ? await writer.close(question.status) : await writer.release();
    this.writers.delete(id);
    return end;
  }

  private events(id: number): WriterEvents {
    const { say } = this.options;
    return {
      onDurable: (offset, size) => say({ is: 'durable', id, offset, size }),
      onStopped: (state, reason) => say({ is: 'stopped', id, state, reason }),
    };
  }
}

function toldFault(error: unknown): ToldFault {
  const { cause } = error instanceof Error ? error : { cause: undefined };
  return {
    code: isFault(error, 'transcript_invalid') ? 'transcript_invalid' : 'recording_failed',
    message: messageOf(error),
    hint: isFault(error) ? (error.hint ?? null) : null,
    cause: { message: messageOf(cause ?? error), code: systemCodeOf(cause) ?? null },
  };
}
