from . import Identity

async def resolve_async(
    name: str, *, plc: str | None = None, development: bool = False, development_port: int | None = None
) -> Identity: ...
