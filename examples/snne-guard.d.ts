// Makes `completion.snne_guard` typed in the package `openai` for TypeScript. Put this
// file next to your sources. A stream has the field on its last chunk alone.
export interface SnneGuard {
  id: string;
  method: string | null;
  score: number | null;
  /** From 0, where all replies are alike, to 1; null without a score. */
  uncertainty: number | null;
  disagreement: number | null;
  self_check: number | null;
  threshold: number | null;
  certified: boolean;
  p_wrong: number | null;
  /** Null without a threshold. */
  decision: "accept" | "flag" | "refuse" | "fallback" | "unscored" | null;
  n_requested: number;
  n_used: number;
  reasons: string[];
  cost: Record<string, number | boolean | null>;
  version: string;
}

declare module "openai/resources/chat/completions/completions" {
  interface ChatCompletion { snne_guard: SnneGuard }
  interface ChatCompletionChunk { snne_guard?: SnneGuard }
}

declare module "openai/resources/responses/responses" {
  interface Response { snne_guard: SnneGuard }
}
