/** Rounds that failed once, each repeated in every run: the fault and the seed that the failing run printed. */
export const REGRESSIONS: readonly { readonly fault: string; readonly seed: number }[] = [];
