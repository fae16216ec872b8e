{#
    materialized='incremental_view': the model is an incremental view, which is fresh without being run again.

    A run creates the view, or replaces its query: the view keeps its grants, indexes and dependents, and serves as it was until the
    new query is computed. With --full-refresh, and where there is something else of the name, it is dropped and created.

    Configurations: `parameters`, a mapping for WITH (...); `indexes`, `grants`, `persist_docs`, `pre_hook`, `post_hook` as ever.
#}
{% materialization incremental_view, adapter='postgres' %}
    {%- set target_relation = this.incorporate(type=this.MaterializedView) -%}
    {%- set existing_relation = load_cached_relation(this) -%}
    {%- set is_replaced = existing_relation is not none
        and not should_full_refresh()
        and pg_eddy.is_incremental_view(existing_relation) -%}

    {{ run_hooks(pre_hooks, inside_transaction=False) }}
    {{ run_hooks(pre_hooks, inside_transaction=True) }}

    {%- if existing_relation is not none and not is_replaced -%}
        {{ adapter.drop_relation(existing_relation) }}
    {%- endif -%}

    {%- call statement('main') -%}
        {{ pg_eddy.create_incremental_view(target_relation, sql) }}
    {%- endcall -%}

    {%- if is_replaced -%}
        {%- do pg_eddy.change_indexes(target_relation) -%}
    {%- else -%}
        {%- do create_indexes(target_relation) -%}
    {%- endif -%}
    {%- set should_revoke = should_revoke(existing_relation, full_refresh_mode=not is_replaced) -%}
    {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke) -%}
    {%- do persist_docs(target_relation, model, for_columns=False) -%}
    {%- do pg_eddy.persist_column_docs(target_relation, model) -%}

    {{ run_hooks(post_hooks, inside_transaction=True) }}
    {{ adapter.commit() }}
    {{ run_hooks(post_hooks, inside_transaction=False) }}

    {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{% macro create_incremental_view(relation, sql) %}
    {%- set parameters = [] -%}
    {%- for name, value in config.get('parameters', {}).items() -%}
        {%- do parameters.append(name ~ " = '" ~ (value | string | replace("'", "''")) ~ "'") -%}
    {%- endfor -%}
    create or replace incremental view {{ relation }}
    {%- if parameters %} with ({{ parameters | join(', ') }}){% endif %}
    as
    {{ sql }}
{% endmacro %}


{# Whether a relation is one: another materialized view cannot be replaced. #}
{% macro is_incremental_view(relation) %}
    {%- set found = run_query(
        "select 1 from pg_catalog.pg_seclabel where provider = 'pg_eddy'"
        ~ " and classoid = 'pg_catalog.pg_class'::pg_catalog.regclass"
        ~ " and objoid = pg_catalog.to_regclass('" ~ (relation | string | replace("'", "''")) ~ "')"
    ) -%}
    {{ return(found | length > 0) }}
{% endmacro %}


{# Comments on columns: dbt's own macro finds no columns of materialized views. #}
{% macro persist_column_docs(relation, model) %}
    {%- if config.persist_column_docs() and model.columns -%}
        {%- set found = run_query(
            "select attname from pg_catalog.pg_attribute where attnum > 0 and not attisdropped"
            ~ " and attrelid = '" ~ (relation | string | replace("'", "''")) ~ "'::pg_catalog.regclass"
        ) -%}
        {%- set names = found.columns[0].values() -%}
        {%- for name, column in model.columns.items() if name in names and column['description'] -%}
            {%- set comment = column['description'] | replace("'", "''") -%}
            {%- do run_query(
                "comment on column " ~ relation ~ "." ~ adapter.quote(name) ~ " is E'" ~ (comment | replace("\\", "\\\\")) ~ "'"
            ) -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}


{# Drops the indexes that the model does not name any more, and creates those that it names now. #}
{% macro change_indexes(relation) %}
    {%- set changes = get_materialized_view_configuration_changes(relation, config) -%}
    {%- if changes and changes.indexes -%}
        {%- call statement('indexes') -%}
            {{ postgres__update_indexes_on_materialized_view(relation, changes.indexes) }}
        {%- endcall -%}
    {%- endif -%}
{% endmacro %}
