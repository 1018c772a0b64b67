#!/usr/bin/env python3
"""Writes tests/goldens/chat_templates.json: what Python's jinja2, set up as transformers' apply_chat_template() sets it
up, makes of chat templates and of single expressions. The templates are our own, in the manner of the models that they
are named after. Needs jinja2 (3.1).

    make_chat_goldens.py > tests/goldens/chat_templates.json
"""
import datetime
import json

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

NOW = datetime.datetime(2026, 11, 22, 9, 5, 7)


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def render(template, variables):
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env.from_string(template).render(**variables)


TEMPLATES = {}

TEMPLATES["llama2"] = """{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('user and assistant must take turns') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}"""

TEMPLATES["llama3"] = """{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"""

TEMPLATES["llama31"] = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The system's words, if there are any -#}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is not none %}
    {{- "Answer with JSON for a call of one of these functions.\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("one call at a time") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

TEMPLATES["mistral"] = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("user and assistant must take turns") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {{- ', "id": "' + (tool_call.id | default("0")) + '"}' }}
            {{- ", " if not loop.last else "]" + eos_token }}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + "}[/TOOL_RESULTS]" }}
    {%- else %}
        {{- raise_exception("no role that is known: " ~ message.role) }}
    {%- endif %}
{%- endfor %}
"""

TEMPLATES["chatml"] = """{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

TEMPLATES["qwen2"] = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system
You are a helpful assistant.<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""

TEMPLATES["qwen3"] = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools>\\n{\\"name\\": <function-name>}<|im_end|>\\n" }}
{%- else %}
    {%- if messages[0].role == 'system' %}
        {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

TEMPLATES["gemma"] = """{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('a system role is not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('user and assistant must take turns') }}{% endif %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\\n'}}{% endif %}"""

TEMPLATES["gemma3"] = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '

' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("user and assistant must take turns") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '
' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("no content that is known") }}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
"""

TEMPLATES["phi3"] = """{% for message in messages %}{% if message['role'] == 'system' and message['content'] %}{{'<|system|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'user' %}{{'<|user|>
' + message['content'] + '<|end|>
'}}{% elif message['role'] == 'assistant' %}{{'<|assistant|>
' + message['content'] + '<|end|>
'}}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>
' }}{% else %}{{ eos_token }}{% endif %}"""

TEMPLATES["zephyr"] = """{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>
' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>
'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}"""

TEMPLATES["deepseek"] = """{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(is_first=false, is_tool=false, system_prompt='', is_first_sp=true) %}{%- for message in messages %}{%- if message['role'] == 'system' %}{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}{{ bos_token }}{{ ns.system_prompt }}{%- for message in messages %}{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{ '<\uff5cUser\uff5c>' + message['content'] }}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}{{ '<\uff5cAssistant\uff5c>' + tool['type'] + '\\n```json\\n' + tool['function']['arguments']|tojson + '\\n```' }}{%- set ns.is_first = true -%}{%- else %}{{ '\\n' + tool['type'] }}{%- endif %}{%- endfor %}{%- endif %}{%- if message['role'] == 'assistant' and 'tool_calls' not in message %}{%- set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{ '<\uff5cAssistant\uff5c>' + content + '<\uff5cend\u2581of\u2581sentence\uff5c>' }}{%- endif %}{%- endfor -%}{% if add_generation_prompt and not ns.is_tool %}{{ '<\uff5cAssistant\uff5c><think>\\n' }}{% endif %}"""

TEMPLATES["smol"] = """{# settings #}
{%- if enable_thinking is not defined -%}
{%- set enable_thinking = true -%}
{%- endif -%}
{%- set reasoning_mode = "/think" if enable_thinking else "/no_think" -%}
{%- macro render_tools(tools) -%}
{%- for tool in tools -%}
  {{ "\\n" ~ (tool.function.name if tool.function is mapping else tool) | upper ~ ":" }}
  {%- for name, p in (tool.function.parameters.properties | default({})).items() %}
  - {{ name }}{% if p.type is defined %} ({{ p.type }}){% endif %}: {{ p.description | default('no words', true) }}
  {% endfor -%}
{%- endfor -%}
{%- endmacro -%}
{{- "<|im_start|>system\\n" -}}
Today Date: {{ strftime_now("%d %B %Y") }}
{{ "Reasoning Mode: " + reasoning_mode }}
{%- if tools %}

### Tools
{{ render_tools(tools) }}
{%- endif %}
<|im_end|>
{% for message in messages -%}
    {%- set content = message.content if message.content is string else "" -%}
    {%- if message.role == "assistant" -%}
        {% generation %}
        {{ "<|im_start|>assistant\\n" ~ content.lstrip("\\n") ~ "<|im_end|>\\n" }}
        {% endgeneration %}
    {%- elif message.role in ["user", "tool"] -%}
        {{ "<|im_start|>" + "user" + "\\n"  + content + "<|im_end|>\\n" }}
    {%- else -%}
        {%- continue -%}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}
<|im_start|>assistant
{%- endif %}
"""


def m(*turns):
    return [{"role": r, "content": c} for r, c in turns]


TOOL = {"type": "function", "function": {"name": "weather", "description": "The \"weather\" <now>", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "description": "a town, e.g. K\u00f6ln"}, "days": {"type": "integer"}}, "required": ["place"]}}}
CALL = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": {"place": "K\u00f6ln", "days": 2, "x": None, "y": 0.5}}}]}
CONVERSATIONS = [
    {"messages": m(("user", "Hi"))},
    {"messages": m(("user", "Hi")), "add_generation_prompt": False},
    {"messages": m(("system", " Be brief.\n"), ("user", "  Who was Ada?\n"), ("assistant", "\n A mathematician. "), ("user", "\u4f60\u597d \"x\" <b>"))},
    {"messages": m(("user", "a"), ("assistant", "<think>\nhm\n</think>\n\nb"), ("user", "c"), ("assistant", "<think>\nso\n</think>\n\nd")), "add_generation_prompt": False},
    {"messages": m(("user", "a"), ("user", "b"))},
    {"messages": m(("assistant", "a"))},
    {"messages": m(("system", "only"))},
    {"messages": m(("user", "Hi")), "enable_thinking": False},
    {"messages": [*m(("user", "Weather?")), CALL, {"role": "tool", "content": "sunny"}], "tools": [TOOL]},
    {"messages": m(("user", "x")), "tools": [TOOL, TOOL]},
    {"messages": m(("robot", "x"))},
    {"messages": []},
]

# Single expressions and statements; each is a template of its own, of which V are the variables.
V = {"s": " Hello, W\u00f6rld! ", "n": 7, "f": 2.5, "t": True, "none": None, "l": [3, 1, 2], "e": [], "d": {"a": 1, "b": [1, 2], "items": 5}, "w": ["b", "A", "c"],
     "o": [{"k": "x", "v": 1}, {"k": "y", "v": 2}, {"k": "x", "v": 3}], "text": "one two  three\nfour\n", "big": 123456789012, "q": "it's"}
SNIPPETS = r"""
{{ 1 + 2 * 3 - 4 // 3 }} {{ 7 / 2 }} {{ 8 / 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }}
{{ 1.0 }} {{ 1e20 }} {{ 1e15 }} {{ 1e16 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1.5e-7 }} {{ 100000.0 }} {{ 0.1 + 0.2 }} {{ 3.0 * 2 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1_000 }}
{{ 'a' ~ 1 ~ none ~ true ~ 1.5 ~ [1, 'x'] ~ x }} {{ 'a' 'b' "c" }} {{ 'a' * 3 }} {{ 2 * [1] }} {{ [1] + [2] }} {{ (1,) + (2, 3) }} {{ () }}
{{ true and 0 }} {{ 0 or 'x' }} {{ not 0 }} {{ none or false }} {{ true + true }} {{ not 1 == 2 }} {{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ 'a' < 'b' }} {{ 1 == true }} {{ '1' == 1 }}
{{ 3 in l }} {{ 9 not in l }} {{ 'ell' in s }} {{ 'a' in d }} {{ 1 in d }} {{ 'x' in undefined_thing }} {{ not 3 in l }} {{ [1] == [1] }} {{ [1] == (1,) }} {{ {'a': 1} == {'a': 1.0} }} {{ (1, 2) < (1, 3) }}
{{ 'yes' if n > 5 else 'no' }} {{ 'yes' if n > 9 }}| {{ 1 if false else 2 if false else 3 }} {{ (1 if t) + 1 }}
{{ l[0] }} {{ l[-1] }} {{ l[9] }}| {{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[::2] }} {{ l[5:] }} {{ l[-2:] }} {{ l[2:0:-1] }} {{ s[1:6] }} {{ s[::-1] }} {{ s[7] }} {{ s[8] }} {{ s[-3] }} {{ s[-100:3] }} {{ (1, 2, 3)[1:] }}
{{ d.a }} {{ d['a'] }} {{ d.b[1] }} {{ d.zzz }}| {{ d['zzz'] }}| {{ d['items'] }} {{ l.0 }} {{ d.b.1 }} {{ o[0].k }} {{ o[1]['v'] }} {{ none.x }}| {{ s.x }}|
{{ d }} {{ l }} {{ [1, 'a', "it's", 'q"', 'n\n\t\\', 1.5, none, true, undefined_thing] }} {{ {} }} {{ {'a': {'b': []}} }} {{ (1,) }} {{ ('a', 2) }} {{ 'a', 1 }} {{ [q] }} {{ ['ö', '\x01', '\u4f60'] }}
{{ s.strip() }}|{{ s.lstrip() }}|{{ s.rstrip() }}|{{ 'xxaxx'.strip('x') }} {{ 'abcba'.strip('ab') }} {{ 'xyz'.lstrip('yx') }} {{ s.upper() }} {{ s.lower() }} {{ "they're bill's FRIENDS".title() }} {{ 'aBC dE'.capitalize() }}
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a,b,c'.split(',', 1) }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b c '.split(none, 1) }} {{ ' a b c '.rsplit(none, 1) }} {{ 'abc'.split('x') }} {{ ''.split(',') }} {{ ''.split() }} {{ 'aXbXXc'.split('XX')[-1] }} {{ text.splitlines() }} {{ 'a\r\nb\rc'.splitlines() }} {{ 'a\nb\n'.splitlines(true) }}
{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abc'.startswith('') }} {{ 'abcabc'.find('c') }} {{ 'abcabc'.rfind('c') }} {{ 'öä'.find('ä') }} {{ 'abc'.find('z') }} {{ 'aaa'.count('a') }} {{ 'aaa'.count('aa') }} {{ 'aaa'.count('') }} {{ 'abcabc'.index('b') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'ab'.replace('', '-') }} {{ 'ab'.replace('', '-', 2) }} {{ '-'.join(w) }} {{ '12'.isdigit() }} {{ ''.isdigit() }} {{ ' '.isspace() }} {{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('bc') }} {{ 'ab1'.isalpha() }}
{{ d.items() | list }} {{ d.keys() | list }} {{ d.values() | list }} {{ d.get('a') }} {{ d.get('z') }} {{ d.get('z', 'q') }} {{ l.index(1) }} {{ l.count(1) }} {{ {'a': 1, 'a': 2} }} {{ {1: 2, true: 3, 'x': 4} }} {{ dict(a=1, b='c') }}
{{ s | trim }}|{{ 'xax' | trim('x') }} {{ s | length }} {{ l | count }} {{ d | length }} {{ undefined_thing | length }} {{ w | join(', ') }} {{ o | join('-', attribute='k') }} {{ l | join }} {{ [1, none, true] | join('|') }}
{{ x | default('d') }} {{ '' | default('d') }}| {{ '' | d('d', true) }} {{ none | default('d') }} {{ none | default('d', boolean=true) }} {{ x | default }}|
{{ 'HeLLo wOrld-foo (bar' | title }} {{ 'HeLLo' | capitalize }} {{ 'ÄÖ' | lower }} {{ 'straße é' | upper }} {{ 'a.b' | replace('.', '!') }} {{ 'aaa' | replace('a', 'b', 2) }} {{ 5 | string + 'x' }} {{ 3 | upper }}
{{ w | first }} {{ w | last }} {{ e | first }}| {{ 'abc' | first }} {{ w | list }} {{ 'abc' | list }} {{ d | list }} {{ l | sort }} {{ l | sort(reverse=true) }} {{ w | sort }} {{ w | sort(case_sensitive=true) }} {{ o | sort(attribute='v', reverse=true) | map(attribute='v') | list }} {{ l | reverse | list }} {{ 'abc' | reverse }} {{ [1, 2, 1, 'a', 'A'] | unique | list }} {{ l | min }} {{ l | max }} {{ w | max }} {{ l | sum }} {{ o | sum(attribute='v') }} {{ o | max(attribute='v') }} {{ e | max }}|
{{ o | map(attribute='k') | list }} {{ w | map('upper') | join }} {{ w | map('replace', 'A', 'z') | list }} {{ o | map(attribute='zz', default='-') | list }} {{ o | selectattr('k', 'equalto', 'x') | list | length }} {{ o | selectattr('k', '==', 'x') | map(attribute='v') | list }} {{ o | rejectattr('v', 'gt', 1) | list }} {{ l | select('odd') | list }} {{ l | reject('odd') | list }} {{ [0, 1, '', 'a'] | select | list }} {{ o | selectattr('v') | list | length }} {{ [{'a': {'b': 3}}] | map(attribute='a.b') | list }} {{ o | selectattr('k', 'in', ['y']) | map(attribute='v') | first }}
{{ '42' | int }} {{ ' 42 ' | int + 1 }} {{ 'x' | int }} {{ 'x' | int(9) }} {{ '3.9' | int }} {{ 3.9 | int }} {{ '0x1f' | int(0, 16) }} {{ 'ff' | int(base=16) }} {{ '1.5' | float }} {{ 'x' | float }} {{ 2 | float }} {{ -3 | abs }} {{ -3.5 | abs }} {{ 2.5 | round }} {{ 3.5 | round }} {{ 2.675 | round(2) }} {{ 2.1 | round(method='ceil') }} {{ 2.9 | round(0, 'floor') }} {{ 42 | round }} {{ 1234.5 | round(-2) }}
{{ d | tojson }} {{ o | tojson(indent=2) }} {{ 'ö"\n<>&\u0001/' | tojson }} {{ [1.5, none, true, 1e20, []] | tojson }} {{ {} | tojson(indent=4) }} {{ {'b': 1, 'a': {'z': 1, 'y': 2}} | tojson(sort_keys=true) }} {{ {1: 2} | tojson }} {{ big | tojson }}
{{ d | tojson(separators=(',', ':')) }} {{ d | tojson(indent=1, separators=[';', '=']) }} {{ 'ö€𝄞\x7f"' | tojson(ensure_ascii=true) }} {{ {'ö': '\x7f'} | tojson(true) }} {{ o | tojson(false, 2, none, true) }} {{ d | tojson(indent=0) }} {{ l | tojson(indent='\t') }} {{ d | tojson(none, none, (', ', ' : '), true) }} {{ e | tojson(indent=2, sort_keys=false, ensure_ascii=false) }}
{% macro f(a) %}{{ a }}|{{ varargs }}|{{ kwargs }};{% endmacro %}{{ f() }}{{ f(1) }}{{ f(1, 2, 'x') }}{{ f(1, z=2, y=none) }}{{ f(1, 2, z=3) }}{{ f(z=1) }} {% macro g() %}{% for v in varargs %}{{ v }},{% endfor %}{% for k, v in kwargs.items() %}{{ k }}={{ v }},{% endfor %}{% endmacro %}{{ g(1, 2, x=3) }} {% macro h(varargs=1) %}{{ varargs }}{% endmacro %}{{ h() }}{{ h(2) }} {% macro k(a) %}{% macro inner() %}{{ varargs }}{% endmacro %}{{ inner(7) }}{{ a }}{% endmacro %}{{ k(1, 2) }}
{% macro f(a) %}{{ varargs }}{% endmacro %}{{ f(1, z=2) }}
{% macro f(a) %}{{ kwargs }}{% endmacro %}{{ f(1, 2) }}
{{ d | tojson(nonsense=1) }}
{{ d | tojson(separators=',:') }}
{{ text | indent }}|{{ text | indent(2, true) }}|{{ 'a\n\nb' | indent(1, blank=true) }}|{{ 'a\nb' | indent('> ') }} {{ text | wordcount }} {{ '<a href="x">&\'' | e }} {{ '<' | safe }} {{ d | dictsort }} {{ {'b': 1, 'A': 2} | dictsort }} {{ {'b': 1, 'a': 2} | dictsort(by='value') }} {{ {'b': 1, 'a': 2} | dictsort(false, 'key', true) }} {{ d | items | list }}
{{ x is defined }} {{ s is defined }} {{ x is undefined }} {{ none is none }} {{ n is number }} {{ t is number }} {{ t is integer }} {{ n is integer }} {{ f is float }} {{ t is boolean }} {{ s is string }} {{ d is mapping }} {{ l is sequence }} {{ s is sequence }} {{ d is sequence }} {{ n is sequence }} {{ l is iterable }} {{ n is iterable }} {{ range is callable }} {{ n is callable }} {{ x is iterable }}
{{ 3 is odd }} {{ 3 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 1 is eq 1 }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 1 is ge 2 }} {{ 1 is in [1] }} {{ 'a' is lower }} {{ 'A' is upper }} {{ t is true }} {{ t is false }} {{ 1 is true }} {{ 1 is sameas true }} {{ none is sameas none }} {{ x is not defined }} {{ not x is defined and 1 }} {{ 3 is not odd or 5 }} {{ d.a is defined and d.a == 1 }} {{ n is gt(3) }} {{ 'é' is lower }} {{ '1' is lower }}
{% for i in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ i }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('x', 'y') }}{{ loop.depth }};{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}{% for i in e %}x{% else %}none{% endfor %}{% for i in l if i > 1 %}{{ i }}{{ loop.length }}{% endfor %}{% for c in 'aö' %}{{ c }}.{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for i in undefined_thing %}x{% else %}nothing{% endfor %}{% for a, b in [(1, 2), (3, 4)] %}{{ a + b }}{% endfor %}{% for i in 1, 2 %}{{ i }}{% endfor %}
{% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %} {{ range(3) | list }} {{ range(1, 7, 2) | list }} {{ range(5, 0, -2) | list }} {% for i in l %}{% for j in l %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}
{% set x = 1 %}{% for i in l %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }} {% if true %}{% set y = 5 %}{% endif %}{{ y }} {% set a, b = 1, 2 %}{{ a }}{{ b }} {% set t = (1, 2) %}{{ t }} {% set u %}block {{ n }}{% endset %}[{{ u }}] {% set v | upper | trim %} block {% endset %}[{{ v }}]
{% set ns = namespace(a=1, b='x') %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }} {{ ns.b }} {{ ns.c }}| {% set ns.c = [1] %}{{ ns.c }} {{ ns['a'] }} {% set ns2 = namespace({'z': 3}) %}{{ ns2.z }}
{% macro f(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ f(1) }}{{ f(1, c=5) }}{{ f(1, 2, 3) }}{{ f() }}{{ f(b=1, a=0) }} {% macro g(n) %}{{ n }}{% if n > 0 %},{{ g(n - 1) }}{% endif %}{% endmacro %}{{ g(4) }} {{ f(1) | upper }} {% set z = 9 %}{% macro h() %}{{ z }}{% endmacro %}{% set z = 10 %}{{ h() }}
{% with a = 1, b = n %}{{ a }}{{ b }}{% set a = 5 %}{{ a }}{% endwith %}{{ a }}| {% filter upper | trim %} abc {{ n }} {% endfilter %}| {% generation %}x{% set inner = 1 %}{% endgeneration %}{{ inner }}|
a {{- 1 -}} b {{ 2 }} c {%- if true -%} d {%- endif %} e {#- x -#} f {# y #} g {% raw %} {{ x }} {% endraw %} h {%- raw -%} {{ y }} {%- endraw -%} i
{{ "a\tb\\n\x41\u00e9\'\"\q" }} {{ 'two
lines' }} {{ {'a}}': '%}'}['a}}'] }} {{ '{{' }} {{ "{% if %}" }}
{{ foo.bar }}
{{ x + 1 }}
{{ 'a' + 1 }}
{{ none + 1 }}
{{ 1 / 0 }}
{{ l.append(1) }}
{{ d.update({'x': 1}) }}
{{ 'a' | nofilter }}
{{ 1 is notest }}
{{ f(1) }}
{{ [1, 'a'] | sort }}
{{ 1 in 2 }}
{{ 1 < 'a' }}
{{ x < 1 }}
{{ {[1]: 2} }}
{{ raise_exception('no ' ~ n) }}
{{ range(1000000) }}
{{ undefined_thing | tojson }}
{{ undefined_thing.x }}
{{ 'abc'.index('z') }}
{{ 'abc'.split('') }}
{{ l[::0] }}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% set d.x = 1 %}
{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{% endmacro %}{{ f(z=2) }}
{{ 1 +
{{ 'abc
{% if x %}
{% endif %}
{% for x in %}{% endfor %}
{% nonsense %}
{{ a b }}
{{ ) }}
{{ [1, 2 }}
{# open
{% raw %} x
{% break %}
{% set true = 1 %}
{{ x is }}
{{ }}
{% if %}{% endif %}
"""
LINES = ["x\n{% if t %}\n  y\n{% endif %}\nz\n", "  {% if t %}  \n  y  \n  {%- endif %}  \nz", "a  {% if t %}\nb{% endif %}\n\nc\n\n", "{% for i in l %}\n  {{ i }}\n{% endfor %}\n\n",
         "{%+ if t %} a\n {%+ endif +%}\n b", "   {# c #}\n x\n   {# c #} y\n", "{{ n }}\n{{ n }}\n", "a\r\n{% if t %}\r\nb\r\n{% endif %}\rc", "\n\n{%- if t -%}\n\n x \n\n{%- endif -%}\n\n",
         "\t{% set x = 1 %}\n\t{{ x }}\n", "{% if t %}x{% endif %}   {% if t %}\n   y{% endif %}", "   {% raw %}\n {{ a }}\n   {% endraw %}\n end", "", "\n", "plain", "{% if t %}a{% elif n %}b{% else %}c{% endif %}",
         "{# a\nb #}\n{{ 1 }}", "   {{ n }}   \n  {% set y = 2 -%}  \n  {{ y }}", "\u00a0{% if t %}\n\u00a0x{%- endif %}\u2003{{- n -}}\u2003|"]


def case(name, template, variables):
    try:
        return {"name": name, "template": template, "variables": variables, "text": render(template, variables)}
    except Exception as e:  # what Jinja says differs from what we say; that it fails must not
        return {"name": name, "template": template, "variables": variables, "fails": type(e).__name__}


cases = []
for name, template in TEMPLATES.items():
    for i, c in enumerate(CONVERSATIONS):
        v = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True, "tools": None, "documents": None, **c}
        cases.append(case("%s %d" % (name, i), template, v))
snippets = SNIPPETS.strip("\n").replace("'two\nlines'", "'two\x00lines'").split("\n")
cases += [case("expressions %d" % i, s.replace("\x00", "\n"), V) for i, s in enumerate(snippets)]
cases += [case("lines %d" % i, s, V) for i, s in enumerate(LINES)]
# each template once, by its name
out = {"templates": TEMPLATES, "cases": [{**c, "template": c["name"].split()[0]} if c["name"].split()[0] in TEMPLATES else c for c in cases]}
print(json.dumps(out, indent=0, ensure_ascii=True))
