"""Names that vulture takes for unused, and who uses them. Whatever else it finds is dead."""

# Python, a library or a protocol calls them by name
__getattr__, __getitem__, __call__, list_commands, writable, seekable, readinto
_selector, _process_events, event_list, _write_to_self  # an event loop's
do_GET, do_POST, do_DELETE, log_message, handle_error, protocol_version, daemon_threads
BatchObjects  # of weaviate's server
shouldRollover  # logging asks whether a file is full
trace, exc  # what `with` hands over
_download_model_if_not_exists  # chromadb's

# Python or a library reads them
__stdin__, __stdout__, __stderr__, raiseExceptions, _value_, row_factory, text_factory
whitespace_split  # of a `shlex.shlex`
(
    style_name,
    parsed,
    validateLink,
    normalizeLinkText,
    handle_starttag,
    handle_startendtag,
    handle_endtag,
)
admin_api_key, project, webhook_secret, _custom_headers, _platform  # openai's client does
tenant, prepared_max, normalizer, pre_tokenizer, post_processor

default_map, subcommand_metavar  # click reads them
model_config, _leave_out_empty, _check_names, _check_numbers, first_task  # pydantic does
_find_model, _find_template

# Arguments that a driver's method or a tool's schema names
sql, month, tags, street, age, local_address, socket_options

# uvicorn and starlette call and read them
capture_signals, should_exit, redirect_slashes

# Methods that a library calls
handle_starttag, handle_endtag, handle_data

# The command line's, by their decorators
(
    tools_test,
    demo,
    doctor,
    migrate,
    retry,
    move,
    edit,
    skip,
    help_,
    list_,
)

# Fields that only JSON shows
not_before, decided_at, v, time_s, n_workers, n_indexed, without_outcome, asked_at

# A policy that is chosen by its value
ALLOW

# Parameters of a file of agents: accepted, or read by their names
input_key, output_key, summary_frequency, update_every

# Settings that are read by the names of their fields
extra_env_files, llama

# What the example file is made from
is_listed

# Verbs that a client sends by their names
pause_schedule, resume_schedule, remove_schedule

# For programs that embed this one
(
    __dir__,
    by_hand,
    why_no_output,
    is_given_up,
    is_done,
    is_approval,
    max_cost,
    max_time,
    add_tool,
    run_batch,
    as_tool,
    keep_last,
    tools_of,
    FORCE,
    duplicates,
)

# What tests and campaigns ask the program
close_log, n_rebuilds, OURS, mend

# What uvicorn asks of a request that broke off
disconnected

# What `ast.NodeVisitor` calls
visit_MatchValue, visit_MatchMapping

add_context, sell  # a program calls the one, and a model the other
