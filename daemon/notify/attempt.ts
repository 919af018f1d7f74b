/** The outcome of one attempt to send a message. */

export interface Attempt {
  readonly delivered: boolean;
  /** HTTP status; null without a response. */
  readonly status: number | null;
  readonly reason: DeliveryReason | null;
  /** Description of the failure; null for a success. */
  readonly error: string | null;
  /** Milliseconds for which nothing more may be sent to the channel; null when the receiver did not ask for a pause. */
  readonly pauseMs: number | null;
}

/** Reason of a failed delivery attempt. */
export type DeliveryReason =
  | 'address_not_allowed'
  | 'unresolvable'
  | 'unreachable'
  | 'tls_failed'
  | 'timeout'
  | 'cut_off'
  | 'refused'
  | 'secrets_locked';
