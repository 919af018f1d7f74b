/** The lifecycle of a long-running part. `stop` is safe to call twice and after a failed start. */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}
