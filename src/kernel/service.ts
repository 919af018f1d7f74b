/** A long-running part under a supervisor. `stop` is safe to call twice and after a failed start. */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}
