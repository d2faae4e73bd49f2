"""What providers call things: the words that the guard knows, in one place.

Options, endings and errors of any provider; what LangChain's classes add is in
``snne_guard.langchain.providers``, beside the table of them.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# -- Options ---------------------------------------------------------------------------

LIMITS = (
    *("max_tokens", "maxTokens", "max_completion_tokens", "max_output_tokens"),
    *("max_new_tokens", "maxOutputTokens", "n_predict", "num_predict"),
)
"""What the token limit of a reply is called by providers."""

STOPS = ("stop", "stop_sequences", "stopSequences")
"""What the texts are called at which a reply ends."""

STREAMS = frozenset({"stream", "stream_options"})
"""Options of a streamed request alone."""

ACTING = _words(
    "background code_execution compound_custom connectors conversation "
    "enable_enhancement enable_search enable_web_search mcp_servers plugins "
    "preset prompt prompt_id "  # may bring tools, and narrow draws
    "search_parameters search_settings tool_ids web_search web_search_options"
)
"""Options with which a provider stores or runs something."""

SEARCHING = (
    *(":online", "search-preview", "search-api", "deep-research", "groq/compound"),
    *("compound-beta", "@preset/"),
)
"""What stands in the names of models that search or run code by themselves."""

SETTINGS = {
    "answer_temperature": ("temperature",),
    "top_p": ("top_p",),
    "max_tokens": LIMITS,
    "stop": STOPS,
}
"""What a calibration knows of an answer, and what providers call it."""

NESTED = _words(
    "additionalModelRequestFields additional_model_request_fields extra_body "
    "generationConfig generation_config inferenceConfig inference_config model_kwargs "
    "nvext options outputConfig output_config parameters params provider_options "
    "sampling_params text toolConfig tool_config venice_parameters vllm_xargs"
)
"""Options that hold further options."""

REPLACE_FIELDS = frozenset({"inferenceConfig", "inference_config", "options"})
"""Those that take the place of a model's fields: Bedrock's and Ollama's."""

OF_ONE_REQUEST = _words(
    "random_seed sampler_seed sampling_seed seed idempotency_key request_id rid "
    "x_client_request_id x_request_id"
)
"""Options and headers that another request may not have too.

One seed for all would draw the same sample again and again; of two requests with one id
vLLM loses one, or gives both replies that id, as a cache does.
"""

NARROWING = _words(
    "temperature temp skew top_p p top_k k min_p top_a top_h tfs tfs_z top_n_sigma "
    "typical typical_p typ_p adaptive_target adaptive_decay epsilon_cutoff eta_cutoff "
    "penalty_alpha dynamic_temperature mirostat mirostat_mode mirostat_tau "
    "mirostat_eta mirostat_target mirostat_lr nsigma min_temp max_temp dynatemp_min "
    "dynatemp_max decoding_method greed_sampling dynatemp_range dynatemp_exponent "
    "dynatemp_low dynatemp_high xtc_probability xtc_threshold smoothing_factor "
    "smoothing_curve sampler samplers sampler_order sampler_priority num_beams "
    "num_beam_groups beam_width use_beam_search best_of sampler_seq do_sample greedy "
    "use_greedy"
)
"""Options that narrow a draw: with them, samples would agree whatever the model knows.

They count in every spelling: ``topK`` and ``TopK`` are ``top_k``. Penalties of
repetition and ``logit_bias`` are none of them: they belong to the answer.
"""

NOT_FOR_SAMPLES = (
    OF_ONE_REQUEST
    | STREAMS
    | _words("candidate_count logprobs n response_logprobs stream_usage top_logprobs")
    # Of what is stored, and for one answer only.
    | _words("metadata prediction")
)
"""Options that a sample does not take over from the user."""

SCHEMAS = _words(
    "format output_format response_format response_json_schema response_mime_type "
    "response_schema textFormat "
    "grammar guided_json json_schema structured_outputs"  # of vLLM and llama.cpp
)
"""Options that ask for an answer that fits a schema, or is JSON."""

NO_SCHEMA = (None, "", "text/plain", {"type": "text"})
"""Values of these options that ask for plain text."""

FORMS = _words(
    "function_call functions parallel_tool_calls strict toolConfig tool_choice "
    "tool_config tools"
).union(SCHEMAS, STOPS)
"""Options that questions about an answer leave out, for a reply in plain words."""

SAID = FORMS.union(
    _words("contents input instructions messages prompt system metadata")
)
"""Options that hold what is said, wanted or called."""

CONTENT = SAID.union(
    _words("chat_template_kwargs data_sources documents logit_bias schema")
)
"""Options in which no name is that of an option."""

ALIKE = _words("prompt_cache_key safety_identifier user").union(
    SAID, LIMITS, NARROWING, NESTED, OF_ONE_REQUEST, STREAMS
)
"""Options on whose values it does not depend what a model takes, or what is in them."""

FIELDS = NESTED | FORMS | {*LIMITS, "n", "store"}
"""Fields of a LangChain model that a draw treats as options, beside what narrows it."""

OWN_TOOLS = (
    *("apply_patch", "bash_", "computer_", "custom", "function", "local_shell"),
    *("memory_", "text_editor_"),
)
"""How the types begin of tools that the application runs, not the provider."""
DECLARATIONS = _words("function functionDeclarations function_declarations toolSpec")
"""All that a tool of the application has, where it has neither type nor name."""

# -- What a reply says -----------------------------------------------------------------

TEXTS = frozenset({"input_text", "output_text", "text"})
"""Types of the parts of a message that say an answer."""

SOURCES = frozenset({"citation", "reference"})
"""Types of parts that say where something comes from."""

PARTS = SOURCES.union(
    _words("reasoning reasoning_content redacted_thinking thinking refusal")
)
"""Types of parts that hold no part of an answer.

Those of the provider's own tools are missing: such calls draw no samples.
"""

BESIDE_TEXT = _words(
    "type role name id index object status phase channel tool_calls tool_plan refusal "
    "parsed "
    # How it was come by, and where from.
    "reasoning reasoning_content reasoning_details reasoning_items reasoning_text "
    "reasoning_opaque reasoning_steps thinking thinking_blocks signature "
    "thought_signature encrypted_content annotations citations reference context "
    "documents search_queries search_results web_search grounding_metadata "
    # What it took, and who gave it.
    "cache_control content_filter_results extra_content finish_reason generation_id "
    "logprobs metadata model model_id model_name provider_metadata safety_ratings "
    "stop_reason token_count token_ids tool_call_id usage related_questions"
)
"""Fields of a message, or of a text in it, that hold no further part of an answer."""

WRAPPERS = frozenset({"extras", "provider_specific_fields"})
"""Fields that hold further ones."""

# -- Why a reply ended -----------------------------------------------------------------

COMPLETE = _words(
    "complete completed end_turn eos eos_token function_call stop stop_sequence "
    "tool_calls tool_use"
)
"""The model ended the reply itself."""

REFUSED = _words(
    "blocklist content_filter content_filtered guardrail_intervened "
    "image_prohibited_content image_recitation image_safety jailbreak model_armor "
    "prohibited_content recitation refusal safety spii"
)
"""The provider holds the reply back."""

# -- Errors ----------------------------------------------------------------------------

TRANSIENT_CODES = frozenset({408, 409, 425, 429, 498})
"""HTTP statuses below 500 after which the same request may succeed; 498 is Groq's."""

SERVER_ERROR = 500
"""From here on all may."""

# The errors of HTTP clients by name, so that none of these has to be installed.
TRANSIENT_NAMES = _words(
    "APIConnectionError APITimeoutError ChunkedEncodingError ClientConnectionError "
    "ClientPayloadError ConnectionError HTTPClientError Timeout TransportError"
)

REJECTED_CODES = frozenset({400, 403, 404, 422})
"""HTTP statuses with which a request may be refused for what it asks."""
