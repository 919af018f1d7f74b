/** Tells of a connection that is lost, once it has been for a while, and of its return. */
import type { LinkState } from '../../client/terminal/terminal-events.js';
import type { Notices } from './notices.js';

export interface LinkNoticesOptions {
  readonly notices: Notices;
  /** How one leaves, such as `~.`; null when nothing does. */
  readonly leave: string | null;
  /** Input waits for as long as it takes. */
  readonly queueInput: boolean;
  /** Milliseconds that something typed has waited for the agent. */
  readonly inputAge: () => number;
}

/** A shorter loss is not worth a word, and neither is one of which what is typed shows nothing. */
const QUIET_MS = 3_000;
const INPUT_QUIET_MS = 1_500;

export class LinkNotices {
  private readonly options: LinkNoticesOptions;
  private timer: NodeJS.Timeout | null = null;
  private told = false;

  constructor(options: LinkNoticesOptions) {
    this.options = options;
  }

  /** The connection to the orchestrator. */
  state(state: LinkState): void {
    if (state.kind === 'connected') this.back('connected to the orchestrator again');
    else if (state.kind === 'silent') this.tell('the orchestrator does not answer');
    else this.soon(`${state.cause.message}; trying again`);
  }

  /** The orchestrator's connection to the agent. */
  agentLink(connected: boolean): void {
    if (connected) this.back('the agent is connected again');
    else this.soon('the orchestrator has lost its connection to the agent, and waits for it');
  }

  stop(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private soon(text: string): void {
    this.stop();
    if (this.options.inputAge() > INPUT_QUIET_MS) this.tell(text);
    else this.timer = setTimeout(() => this.tell(text), QUIET_MS);
  }

  private tell(text: string): void {
    this.stop();
    if (this.told) return;
    this.told = true;
    const { notices, leave, queueInput } = this.options;
    const keys = queueInput
      ? 'what you type is sent when it is back'
      : 'what you type is dropped unless it is back within 10 s';
    notices.say(text, leave === null ? keys : `${keys}; ${leave} leaves`);
  }

  private back(text: string): void {
    this.stop();
    if (!this.told) return;
    this.told = false;
    const { notices } = this.options;
    notices.say(text);
  }
}
