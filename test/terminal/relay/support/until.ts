/** Waits until something is so, for as long as a loaded machine may need. */
export async function until(isSo: () => boolean | Promise<boolean>, what: string, within = 20_000): Promise<void> {
  const end = performance.now() + within;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
