/** Why an operation did not succeed. */

export interface OperationError {
  readonly code: string;
  readonly message: string;
}
