/** Programs that run beside the benchmark and answer its questions over IPC. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const DIRECTORY = fileURLToPath(new URL('../../dist/bench/', import.meta.url));

/** Default limit of an answer in milliseconds. It only ends what hangs. */
const PATIENCE = 120_000;

interface Waiting {
  resolve(answer: unknown): void;
  reject(error: Error): void;
}

interface Answer {
  readonly id: number;
  readonly answer?: unknown;
  readonly error?: string;
}

export class Program {
  private readonly child: ChildProcess;
  private readonly name: string;
  private readonly waiting = new Map<number, Waiting>();
  private readonly ended: Promise<void>;
  private questions = 0;

  /**
   * Starts a program that `bench.mjs` has bundled.
   * @param onNews called with every message that answers no question
   */
  constructor(name: string, onNews: (news: unknown) => void = () => undefined) {
    this.name = name;
    this.child = fork(`${DIRECTORY}${name}.mjs`, [], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    this.child.on('message', (message) => {
      if (isAnswer(message)) this.take(message);
      else onNews(message);
    });
    this.ended = new Promise((resolve) => {
      this.child.once('close', (status, signal) => {
        for (const { reject } of this.waiting.values()) reject(new Error(`${name} ended with ${status ?? signal}`));
        this.waiting.clear();
        resolve();
      });
    });
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** Rejects with the program's error, when the program ends, and after `withinMs`. */
  ask<T = void>(question: object, withinMs = PATIENCE): Promise<T> {
    this.questions += 1;
    const id = this.questions;
    return new Promise<T>((resolve, reject) => {
      const timer = setTimeout(
        () => this.take({ id, error: `no answer to ${JSON.stringify(question).slice(0, 80)}` }),
        withinMs,
      );
      this.waiting.set(id, {
        resolve: (answer) => {
          clearTimeout(timer);
          resolve(answer as T);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      });
      this.child.send({ id, question }, (error) => error && this.take({ id, error: error.message }));
    });
  }

  async stop(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.ended;
  }

  private take({ id, answer, error }: Answer): void {
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    if (error === undefined) waiting?.resolve(answer);
    else waiting?.reject(new Error(`${this.name}: ${error}`));
  }
}

const isAnswer = (message: unknown): message is Answer =>
  typeof message === 'object' && message !== null && 'id' in message;

/** The other end of `Program`: answers each question, and ends the process when the benchmark is gone. */
export function answerQuestions<Q>(answer: (question: Q) => unknown): void {
  process.on('disconnect', () => process.exit());
  process.on('message', ({ id, question }: { readonly id: number; readonly question: Q }) => {
    Promise.resolve()
      .then(() => answer(question))
      .then(
        (result) => tell({ id, answer: result }),
        (error: unknown) =>
          tell({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
      );
  });
}

/** Sends a message to the benchmark that answers no question. */
export function tell(news: object): void {
  process.send?.(news, undefined, undefined, () => undefined);
}
