/** The SQL statements that an orchestrator runs, as its process writes them down. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const PRELOAD = fileURLToPath(new URL('./statement-log.cjs', import.meta.url));

/** Milliseconds without a statement after which an orchestrator counts as quiet. */
const QUIET = 300;

export class StatementLog {
  private readonly file: string;

  constructor(file: string) {
    this.file = file;
  }

  /** Environment of an orchestrator that writes its statements to the file. */
  get env(): NodeJS.ProcessEnv {
    return { NODE_OPTIONS: `--require=${PRELOAD}`, ORCH_TEST_STATEMENTS: this.file };
  }

  /** Returns the statements that `work` causes, with those that follow until the orchestrator is quiet. */
  async during(work: () => Promise<unknown>): Promise<readonly string[]> {
    const before = await this.quiet();
    await work();
    return this.read().slice(before, await this.quiet());
  }

  private async quiet(): Promise<number> {
    for (let count = this.read().length; ; ) {
      await new Promise((resolve) => setTimeout(resolve, QUIET));
      const now = this.read().length;
      if (now === count) return now;
      count = now;
    }
  }

  private read(): readonly string[] {
    const text = readFileSync(this.file, 'utf8');
    return text
      .slice(0, text.lastIndexOf('\n') + 1)
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  }
}
