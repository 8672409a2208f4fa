"""A model behind any server that speaks OpenAI's protocol, in either of its two dialects."""

from __future__ import annotations

from copy import copy

from babyagi.errors import ModelUnavailableError, ToolsUnsupportedError
from babyagi.llm import chat, responses
from babyagi.llm.base import Completion
from babyagi.llm.endpoint import Endpoint
from babyagi.llm.faults import RefusedParameterError, check_model_name
from babyagi.llm.form import Form
from babyagi.llm.prices import Price
from babyagi.llm.prompt import Prompt, bound_tokens
from babyagi.llm.reading import RawReply, build_completion, count
from babyagi.tasks import Reservation, Role


class OpenAIModel:
    """A `ChatModel` behind an endpoint. What the endpoint refuses to take is left out from then on;
    tools are for the caller to leave out, and are not offered twice where they were refused.

    Args:
        endpoint: closed with the model; several models may share one.
        temperature: None sends none.
        dialect: `chat`, `responses`, or `auto`: Responses for OpenAI's own endpoint, Chat
            Completions for every other.
        price: None when it is unknown; then calls are counted as costing nothing, and a limit in
            money must be off.
    """

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        *,
        temperature: float | None = None,
        dialect: str = "auto",
        price: Price | None = None,
    ) -> None:
        self.name = name
        self._endpoint = endpoint
        self._price = price
        if dialect == "auto":
            dialect = "responses" if endpoint.is_openai else "chat"
        self._dialect = responses if dialect == "responses" else chat
        # Servers that are not OpenAI's mostly know the older name, and some ignore the newer one: a
        # reply without a limit.
        output_limit = "max_completion_tokens" if endpoint.is_openai else "max_tokens"
        self._form = Form(temperature=temperature, output_limit=output_limit)
        self._tools_refused: ToolsUnsupportedError | None = None

    def reserve(self, prompt: Prompt) -> Reservation:
        bound = bound_tokens(prompt)
        cost_usd = self._price.cost_usd(bound, prompt.max_output_tokens) if self._price else 0.0
        return Reservation(calls=1, tokens=bound + prompt.max_output_tokens, cost_usd=cost_usd)

    async def complete(self, prompt: Prompt, *, role: Role) -> Completion:
        if self._endpoint.is_openai:
            check_model_name(self.name)
        if prompt.tools and self._tools_refused is not None:
            raise copy(self._tools_refused)
        try:
            return build_completion(
                await self._ask(prompt), prompt, name=self.name, price=self._price
            )
        except ToolsUnsupportedError as error:
            self._tools_refused = error
            raise
        except ModelUnavailableError as error:
            if error.said_usage is not None:
                error.billed = count(error.said_usage, prompt, said="", price=self._price)
            raise

    async def _ask(self, prompt: Prompt) -> RawReply:
        """Post the prompt, leaving out what is refused; every round leaves out one thing more, so
        there is an end."""
        while True:
            form = self._form
            sent = self._dialect.render_request(prompt, self.name, form)
            try:
                return await self._endpoint.post(
                    self._dialect.PATH, sent, model=self.name, parse=self._dialect.parse_reply
                )
            except RefusedParameterError as error:
                smaller = form.without(error.refusal, sent)
                if smaller is None:
                    raise error.error from error
                if self._form is form:  # else another call has learnt it meanwhile
                    self._form = smaller

    async def close(self) -> None:
        await self._endpoint.close()
