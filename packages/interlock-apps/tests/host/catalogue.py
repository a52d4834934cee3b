"""A made-up catalogue of 2,000 tools of 50 servers, for what has to be found among many."""

from __future__ import annotations

from interlock.types import Tool

# A server, what it is about, and its eight kinds of things.
SERVERS = {
    "github": (
        "code hosting",
        "repository issue pull_request branch commit release label workflow_run",
    ),
    "gitlab": (
        "self-hosted code",
        "project merge_request pipeline runner snippet milestone wiki_page deploy_key",
    ),
    "jira": ("issue tracking", "ticket sprint epic board worklog component version filter"),
    "slack": ("team chat", "channel message thread reaction emoji user_group reminder huddle"),
    "gmail": (
        "electronic mail",
        "email draft mail_label attachment mail_filter signature vacation_reply mailbox",
    ),
    "calendar": (
        "appointments and meetings",
        "event calendar attendee invitation meeting_room recurrence availability holiday",
    ),
    "drive": (
        "documents in the cloud",
        "document folder shared_link spreadsheet presentation comment revision permission",
    ),
    "notion": ("notes and wikis", "page database block note template workspace backlink property"),
    "postgres": (
        "a relational database",
        "table row index view schema trigger stored_procedure sequence",
    ),
    "redis": (
        "a key-value cache",
        "key hash sorted_set stream_entry pubsub_subscription lua_script expiry cluster_node",
    ),
    "stripe": ("payments", "payment refund customer invoice subscription coupon payout dispute"),
    "shopify": (
        "an online shop",
        "product order cart inventory_level collection discount_code gift_card storefront",
    ),
    "salesforce": (
        "customer relations",
        "lead opportunity account contact campaign quote contract forecast",
    ),
    "zendesk": (
        "customer support",
        "support_request macro satisfaction_rating help_article agent queue escalation "
        "canned_reply",
    ),
    "flights": (
        "air travel",
        "flight airline airport boarding_pass seat baggage_allowance layover flight_status",
    ),
    "hotels": (
        "places to stay",
        "hotel room reservation guest_review amenity room_rate housekeeping_request check_in",
    ),
    "trains": (
        "rail travel",
        "train station timetable rail_ticket platform delay sleeper_berth rail_pass",
    ),
    "maps": (
        "places and ways",
        "route place address distance traffic_jam parking_lot elevation street_view",
    ),
    "meteo": (
        "weather",
        "forecast temperature rainfall storm_warning air_quality pollen_count wind_speed sunrise",
    ),
    "currency": (
        "foreign exchange",
        "exchange_rate currency conversion rate_alert central_bank historical_rate "
        "crypto_price bank_fee",
    ),
    "bank": (
        "a bank account",
        "transfer balance statement standing_order direct_debit debit_card loan beneficiary",
    ),
    "stocks": (
        "the stock market",
        "share_price portfolio dividend watchlist earnings_report option_chain market_index trade",
    ),
    "spotify": (
        "music streaming",
        "song album playlist artist podcast episode lyrics playback_queue",
    ),
    "youtube": (
        "videos",
        "video subtitle video_channel livestream view_count short thumbnail chapter",
    ),
    "kitchen": (
        "cooking",
        "recipe ingredient meal_plan shopping_list nutrition_fact cuisine leftover cooking_timer",
    ),
    "restaurants": (
        "eating out",
        "restaurant dinner_table menu dish dietary_need tip delivery food_critic",
    ),
    "fitness": (
        "sport and training",
        "workout exercise running_track heart_rate calorie step_count sleep_phase weight_goal",
    ),
    "health": (
        "medical records",
        "patient prescription allergy vaccination lab_result appointment_slot diagnosis symptom",
    ),
    "smarthome": (
        "a home that is automated",
        "lamp thermostat door_lock blind camera_feed scene motion_sensor vacuum_robot",
    ),
    "kubernetes": ("containers", "pod deployment service namespace config_map secret node ingress"),
    "aws": (
        "cloud computing",
        "bucket instance lambda_function security_group load_balancer queue_message "
        "iam_role snapshot",
    ),
    "docker": (
        "container images",
        "container image volume network registry compose_stack build_cache healthcheck",
    ),
    "sentry": (
        "errors in production",
        "exception stack_trace alert_rule error_release crash_report breadcrumb "
        "performance_span error_owner",
    ),
    "grafana": (
        "monitoring",
        "dashboard panel metric alert annotation data_source log_line on_call_shift",
    ),
    "figma": (
        "interface design",
        "frame design_component colour_style prototype vector_layer design_comment font "
        "export_asset",
    ),
    "photos": (
        "pictures",
        "photo photo_album face picture_tag slideshow screenshot raw_file camera_lens",
    ),
    "translate": (
        "languages",
        "translation glossary detected_language pronunciation synonym dictionary_entry "
        "idiom transliteration",
    ),
    "news": (
        "newspapers",
        "headline article news_source topic editorial crossword obituary press_release",
    ),
    "legal": (
        "law",
        "clause court_case statute non_disclosure_agreement trademark patent licence "
        "legal_deadline",
    ),
    "hr": (
        "staff",
        "employee vacation_day payslip job_opening applicant interview performance_review "
        "org_chart",
    ),
    "school": ("lessons", "lesson pupil grade homework timetable_slot exam report_card classroom"),
    "library": (
        "a public library",
        "book author loan_period library_card hold_request reading_room fine isbn",
    ),
    "realestate": (
        "houses and flats",
        "house_listing mortgage viewing tenant rent floor_plan neighbourhood broker",
    ),
    "logistics": (
        "parcels and freight",
        "parcel tracking_number warehouse courier customs_form pallet delivery_window return_label",
    ),
    "cars": (
        "vehicles",
        "rental_car fuel_price charging_station car_repair tyre number_plate road_toll "
        "insurance_policy",
    ),
    "garden": (
        "plants",
        "plant watering_schedule soil_sample seed pest harvest greenhouse compost",
    ),
    "games": (
        "video games",
        "player leaderboard achievement match_result game_save guild quest loot_item",
    ),
    "genealogy": (
        "family history",
        "ancestor birth_record marriage_record census gravestone family_tree surname dna_match",
    ),
    "astronomy": (
        "the night sky",
        "planet star constellation moon_phase eclipse telescope satellite_pass meteor_shower",
    ),
    "energy": (
        "electricity and heat",
        "meter_reading solar_panel tariff power_outage battery_level carbon_footprint "
        "heat_pump utility_bill",
    ),
}

VERBS = {
    "create": (
        "Create {a} {thing}.",
        "Makes a new {thing} and returns its id. Fails if one with the same name exists already.",
    ),
    "list": (
        "List all {thing}s.",
        "Returns {thing}s page by page, newest first. Use the cursor to get the next page.",
    ),
    "get": (
        "Get one {thing} by id.",
        "Returns every field of the {thing}, with links to what belongs to it.",
    ),
    "update": (
        "Change {a} {thing}.",
        "Only the given fields of the {thing} are modified; the others stay as they are.",
    ),
    "delete": ("Delete {a} {thing}.", "Removes the {thing} for good. This cannot be undone."),
}


def catalogue() -> dict[str, list[Tool]]:
    """The tools of each server."""
    return {
        server: [_tool(about, thing, verb) for thing in things.split() for verb in VERBS]
        for server, (about, things) in SERVERS.items()
    }


def _tool(about: str, thing: str, verb: str) -> Tool:
    plain = thing.replace("_", " ")
    first, second = (
        text.format(thing=plain, a="an" if plain[0] in "aeiou" else "a") for text in VERBS[verb]
    )
    properties = {
        f"{thing}_id": {
            "type": "string",
            "description": f"The id of the {plain}, as `list_{thing}` gives it.",
        },
        "fields": {
            "type": "object",
            "description": f"Values for the {plain}: name, notes, tags, status and so on.",
        },
        "cursor": {"type": "string", "description": "Where to go on, from the page before."},
        "dry_run": {"type": "boolean", "description": "Only say what would happen."},
    }
    return Tool(
        name=f"{verb}_{thing}",
        title=f"{verb.capitalize()} {plain}",
        description=f"{first} Part of the tools for {about}. {second}",
        input_schema={"type": "object", "properties": properties},
    )
