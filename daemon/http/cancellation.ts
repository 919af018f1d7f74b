/** An abort signal that is made when somebody looks at it: most requests are over before anybody does. */
export class Cancellation {
  private controller: AbortController | null = null;
  private cancelled: { readonly reason: unknown } | null = null;

  get signal(): AbortSignal {
    if (this.controller === null) {
      this.controller = new AbortController();
      if (this.cancelled) this.controller.abort(this.cancelled.reason);
    }
    return this.controller.signal;
  }

  /** The first reason counts. */
  cancel(reason: unknown): void {
    this.cancelled ??= { reason };
    this.controller?.abort(reason);
  }
}
