/** The SQL statements that an orchestrator runs, as its process writes them down. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const PRELOAD = fileURLToPath(new URL('./statement-log.cjs', import.meta.url));

/** Milliseconds without a statement after which an orchestrator counts as quiet. */
const QUIET = 300;

export class StatementLog {
  private readonly file: string;
  private readonly statementOf: (line: string) => string | null;

  /** @param statementOf returns the statement that a line of the file tells of, or null */
  constructor(file: string, statementOf: (line: string) => string | null = (line) => JSON.parse(line)) {
    this.file = file;
    this.statementOf = statementOf;
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

  /** Returns the statements that ran while `work` did, also those of others. */
  async meanwhile(work: () => Promise<unknown>): Promise<readonly string[]> {
    const before = this.read().length;
    await work();
    return this.read().slice(before);
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
      .flatMap((line) => this.statementOf(line) ?? []);
  }
}

/** The statement in a line of PostgreSQL's log with `log_statement = all`; null for others, and for the watch of the connection. */
export function statementOfPostgres(line: string): string | null {
  const [, statement] = /LOG: {2}(?:execute [^:]*|statement): (.*)$/.exec(line) ?? [];
  return statement === undefined || statement === 'select 1' ? null : statement;
}
