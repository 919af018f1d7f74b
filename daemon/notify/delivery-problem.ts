/** Why a request of a channel was not answered with success. */
export type DeliveryReason =
  | 'address_not_allowed'
  | 'unresolvable'
  | 'unreachable'
  | 'tls_failed'
  | 'timeout'
  | 'cut_off'
  | 'refused'
  | 'secrets_locked';

export class DeliveryProblem extends Error {
  override readonly name = 'DeliveryProblem';
  readonly reason: DeliveryReason;

  /** @param message what happened, without anything secret */
  constructor(reason: DeliveryReason, message: string) {
    super(message);
    this.reason = reason;
  }
}
