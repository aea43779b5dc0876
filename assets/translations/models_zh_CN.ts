<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="zh_CN" sourcelanguage="en">
<context>
    <name>models</name>
    <message>
        <source>"{value}" is not the address of a server. Write it like http://localhost:11434.</source>
        <translation>“{value}”不是服务器地址。请写成 http://localhost:11434 的形式。</translation>
    </message>
    <message>
        <source>The address of the server holds a name, a key or a question mark. Leave them out; the key has a field of its own.</source>
        <translation>服务器地址中包含用户名、密钥或问号。请去掉它们；密钥有单独的输入框。</translation>
    </message>
    <message>
        <source>The connection to {host} would not be encrypted: everyone on the way could read your text. Use https, or allow it by "Allow unencrypted connections".</source>
        <translation>与 {host} 的连接不会加密，途中的任何人都能读到您的文字。请使用 https，或打开“允许未加密的连接”。</translation>
    </message>
    <message>
        <source>The server is not set up</source>
        <translation>尚未设置服务器</translation>
    </message>
    <message>
        <source>The server cannot be reached</source>
        <translation>无法连接服务器</translation>
    </message>
    <message>
        <source>The server refuses the key</source>
        <translation>服务器拒绝了密钥</translation>
    </message>
    <message>
        <source>The server does not have this model</source>
        <translation>服务器上没有此模型</translation>
    </message>
    <message>
        <source>The server does not answer</source>
        <translation>服务器没有响应</translation>
    </message>
    <message>
        <source>This is not a server for language models</source>
        <translation>这不是语言模型服务器</translation>
    </message>
    <message>
        <source>The connection broke off</source>
        <translation>连接中断</translation>
    </message>
    <message>
        <source>The server refuses this request</source>
        <translation>服务器拒绝了请求</translation>
    </message>
    <message>
        <source>The server has too much to do</source>
        <translation>服务器过于繁忙</translation>
    </message>
    <message>
        <source>The server failed</source>
        <translation>服务器出错</translation>
    </message>
    <message>
        <source>This works only with a model on this machine</source>
        <translation>此功能只能使用本机模型</translation>
    </message>
    <message>
        <source>No server has been set up. Enter its address in the window of models, or choose a local model.</source>
        <translation>尚未设置服务器。请在模型窗口中填写地址，或选择本机模型。</translation>
    </message>
    <message>
        <source>{host} cannot be reached ({reason}). Check the address, that the server runs, and the network; or choose a local model.</source>
        <translation>无法连接 {host}（{reason}）。请检查地址、服务器是否在运行以及网络；也可以选择本机模型。</translation>
    </message>
    <message>
        <source>{host} has said nothing for {seconds} seconds. It may be loading its model or be busy: try again, or choose a local model.</source>
        <translation>{host} 已有 {seconds} 秒没有响应，可能正在加载模型或较忙。请重试，或选择本机模型。</translation>
    </message>
    <message>
        <source>{host} broke off its answer. What has come so far is kept; try again for the rest.</source>
        <translation>{host} 中断了回答。已收到的内容会保留；请重试以获得其余部分。</translation>
    </message>
    <message>
        <source>{host} answers, but not as a server for language models does ({reason}). Check the address and its port; it usually ends in /v1.</source>
        <translation>{host} 有响应，但不像语言模型服务器（{reason}）。请检查地址和端口；地址通常以 /v1 结尾。</translation>
    </message>
    <message>
        <source>{host} has no model yet. Load one there, then try again.</source>
        <translation>{host} 上还没有模型。请先在那里加载一个，再重试。</translation>
    </message>
    <message>
        <source>{host} has no model "{model}". It has {known}. Choose one of them.</source>
        <translation>{host} 上没有模型“{model}”，现有 {known}。请从中选择。</translation>
    </message>
    <message>
        <source>{host} has no model "{model}". Choose one that it has.</source>
        <translation>{host} 上没有模型“{model}”。请选择它已有的模型。</translation>
    </message>
    <message>
        <source>{host} wants another key ({reason}). Enter the key of this server anew.</source>
        <translation>{host} 需要其他密钥（{reason}）。请重新输入此服务器的密钥。</translation>
    </message>
    <message>
        <source>{host} has too much to do ({reason}). Try again in a moment.</source>
        <translation>{host} 过于繁忙（{reason}）。请稍后重试。</translation>
    </message>
    <message>
        <source>{host} failed ({reason}). Try again; its own log says more.</source>
        <translation>{host} 出错（{reason}）。请重试；详情见服务器日志。</translation>
    </message>
    <message>
        <source>{host} refuses the request ({reason}). Select a shorter text, or choose another model.</source>
        <translation>{host} 拒绝了请求（{reason}）。请选择较短的文字，或换一个模型。</translation>
    </message>
    <message>
        <source>{what} Choose a model on this machine for it.</source>
        <translation>{what}请为此选择本机模型。</translation>
    </message>
    <message>
        <source>The server plans its memory itself.</source>
        <translation>服务器自行管理内存。</translation>
    </message>
    <message>
        <source>Servers have no common way to hold an answer to such a form.</source>
        <translation>各服务器没有统一的方式来限定这种回答格式。</translation>
    </message>
    <message>
        <source>A context of {tokens} tokens would fit.</source>
        <translation>上下文设为 {tokens} 个词元即可装下。</translation>
    </message>
    <message>
        <source>Add a file…</source>
        <translation>添加文件…</translation>
    </message>
    <message>
        <source>Add a folder…</source>
        <translation>添加文件夹…</translation>
    </message>
    <message>
        <source>Add a model file</source>
        <translation>添加模型文件</translation>
    </message>
    <message>
        <source>Add a model's folder, or a folder of models</source>
        <translation>添加一个模型的文件夹，或装有多个模型的文件夹</translation>
    </message>
    <message>
        <source>Address</source>
        <translation>地址</translation>
    </message>
    <message>
        <source>Allow unencrypted connections</source>
        <translation>允许未加密的连接</translation>
    </message>
    <message>
        <source>Answers come from a server</source>
        <translation>由服务器回答</translation>
    </message>
    <message>
        <source>Any server that speaks OpenAI's protocol: vLLM, SGLang, Ollama, llama.cpp. The key is kept in the system's keyring.</source>
        <translation>任何兼容 OpenAI 协议的服务器：vLLM、SGLang、Ollama、llama.cpp。密钥保存在系统密钥环中。</translation>
    </message>
    <message>
        <source>Asking {host}…</source>
        <translation>正在询问 {host}…</translation>
    </message>
    <message>
        <source>Can be downloaded</source>
        <translation>可下载</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>取消</translation>
    </message>
    <message>
        <source>Cannot be used</source>
        <translation>无法使用</translation>
    </message>
    <message>
        <source>Check the files</source>
        <translation>检查文件</translation>
    </message>
    <message>
        <source>Checking that every byte is right…</source>
        <translation>正在逐字节校验…</translation>
    </message>
    <message>
        <source>Chosen</source>
        <translation>已选用</translation>
    </message>
    <message>
        <source>Close programs that hold much memory, a browser for example: {missing} are missing.</source>
        <translation>请关闭占用内存多的程序，例如浏览器：还差 {missing}。</translation>
    </message>
    <message>
        <source>Close programs that use the GPU, a game or a video editor for example: {missing} are missing.</source>
        <translation>请关闭占用 GPU 的程序，例如游戏或视频编辑软件：还差 {missing}。</translation>
    </message>
    <message>
        <source>Coming into memory</source>
        <translation>正在加载内存</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>上下文长度</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>删除</translation>
    </message>
    <message>
        <source>Delete a model</source>
        <translation>删除模型</translation>
    </message>
    <message>
        <source>Delete from the disk…</source>
        <translation>从磁盘删除…</translation>
    </message>
    <message>
        <source>Delete {model} from the disk?</source>
        <translation>要从磁盘删除 {model} 吗？</translation>
    </message>
    <message>
        <source>Deleted</source>
        <translation>已删除</translation>
    </message>
    <message>
        <source>Does not fit: needs {needed}, and {free} are free</source>
        <translation>装不下：需要 {needed}，可用 {free}</translation>
    </message>
    <message>
        <source>Does not fit: needs {needed}, and {free} would be free once {model} has left</source>
        <translation>装不下：需要 {needed}，{model} 退出后可用 {free}</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>下载</translation>
    </message>
    <message>
        <source>Empty where the server wants none</source>
        <translation>服务器不需要密钥时留空</translation>
    </message>
    <message>
        <source>Everyone on the way could read your text.</source>
        <translation>途中的任何人都能读到您的文字。</translation>
    </message>
    <message>
        <source>Fits: needs {needed} of {free}</source>
        <translation>装得下：需要 {needed}，可用 {free}</translation>
    </message>
    <message>
        <source>Fits: needs {needed} of {free} once {model} has left</source>
        <translation>装得下：需要 {needed}，{model} 退出后可用 {free}</translation>
    </message>
    <message>
        <source>Go on</source>
        <translation>继续下载</translation>
    </message>
    <message>
        <source>How much text and answer fit together; more takes more memory.</source>
        <translation>文字和回答合计能容纳的长度；越长占用内存越多。</translation>
    </message>
    <message>
        <source>In memory</source>
        <translation>在内存中</translation>
    </message>
    <message>
        <source>In memory now</source>
        <translation>当前在内存中</translation>
    </message>
    <message>
        <source>In use</source>
        <translation>使用中</translation>
    </message>
    <message>
        <source>It can be downloaded again.</source>
        <translation>以后可以重新下载。</translation>
    </message>
    <message>
        <source>It cannot be brought back.</source>
        <translation>删除后无法恢复。</translation>
    </message>
    <message>
        <source>Key</source>
        <translation>密钥</translation>
    </message>
    <message>
        <source>Largest that fits: {tokens}</source>
        <translation>最大可用：{tokens}</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>加载</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>加载中</translation>
    </message>
    <message>
        <source>Loading into memory: {percent} %</source>
        <translation>正在加载内存：{percent} %</translation>
    </message>
    <message>
        <source>Looking for the best source…</source>
        <translation>正在寻找下载来源…</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>模型</translation>
    </message>
    <message>
        <source>More for {model}</source>
        <translation>{model} 的更多操作</translation>
    </message>
    <message>
        <source>No model is chosen</source>
        <translation>尚未选择模型</translation>
    </message>
    <message>
        <source>Not in memory</source>
        <translation>未在内存中</translation>
    </message>
    <message>
        <source>Nothing is in memory</source>
        <translation>内存中没有模型</translation>
    </message>
    <message>
        <source>On a server</source>
        <translation>在服务器上</translation>
    </message>
    <message>
        <source>On this machine</source>
        <translation>在本机上</translation>
    </message>
    <message>
        <source>Open the folder of models</source>
        <translation>打开模型文件夹</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>暂停</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>已暂停</translation>
    </message>
    <message>
        <source>Progress of {model}</source>
        <translation>{model} 的进度</translation>
    </message>
    <message>
        <source>Set up…</source>
        <translation>设置…</translation>
    </message>
    <message>
        <source>Show in the file manager</source>
        <translation>在文件管理器中显示</translation>
    </message>
    <message>
        <source>Stopping…</source>
        <translation>正在停止…</translation>
    </message>
    <message>
        <source>Suits this machine: wants {needed} of memory, and it has {present}</source>
        <translation>适合本机：建议内存 {needed}，本机有 {present}</translation>
    </message>
    <message>
        <source>Take off the list</source>
        <translation>从列表中移除</translation>
    </message>
    <message>
        <source>Takes the model out of memory; the next action loads it again.</source>
        <translation>把模型移出内存；下次操作时会重新加载。</translation>
    </message>
    <message>
        <source>Text leaves this machine when this is in use</source>
        <translation>使用它时，文字会离开本机</translation>
    </message>
    <message>
        <source>Text leaves this machine: every text that you run an action on is sent there.</source>
        <translation>文字会离开本机：您处理的每段文字都会发送到服务器。</translation>
    </message>
    <message>
        <source>Text leaves this machine: it is sent to {host}.</source>
        <translation>文字会离开本机：将发送到 {host}。</translation>
    </message>
    <message>
        <source>Text leaves this machine, to {host}: {model}</source>
        <translation>文字会离开本机，发送到 {host}：{model}</translation>
    </message>
    <message>
        <source>The download stopped</source>
        <translation>下载已中断</translation>
    </message>
    <message>
        <source>The next action loads it.</source>
        <translation>下次操作时会加载。</translation>
    </message>
    <message>
        <source>The path has the sign "{sign}" in it. Rename the folder, or move the model.</source>
        <translation>路径中含有符号“{sign}”。请重命名文件夹，或移动模型。</translation>
    </message>
    <message>
        <source>The server answers. Models there: {count}.</source>
        <translation>服务器有响应，共有 {count} 个模型。</translation>
    </message>
    <message>
        <source>The server cannot be used</source>
        <translation>无法使用此服务器</translation>
    </message>
    <message>
        <source>The settings were not saved</source>
        <translation>设置未能保存</translation>
    </message>
    <message>
        <source>There is no keyring here to keep the key. It holds until you quit DeskInfer; then enter it again.</source>
        <translation>本机没有可保存密钥的密钥环。密钥只在退出 DeskInfer 之前有效，之后需重新输入。</translation>
    </message>
    <message>
        <source>This cannot be added</source>
        <translation>无法添加</translation>
    </message>
    <message>
        <source>This frees {size}.</source>
        <translation>将释放 {size}。</translation>
    </message>
    <message>
        <source>Too large for this machine: wants {needed} of memory, and it has {present}</source>
        <translation>对本机来说太大：建议内存 {needed}，本机有 {present}</translation>
    </message>
    <message>
        <source>Try it</source>
        <translation>试连</translation>
    </message>
    <message>
        <source>Use</source>
        <translation>使用</translation>
    </message>
    <message>
        <source>Use a server</source>
        <translation>使用服务器</translation>
    </message>
    <message>
        <source>Use a server…</source>
        <translation>使用服务器…</translation>
    </message>
    <message>
        <source>Use it</source>
        <translation>使用</translation>
    </message>
    <message>
        <source>Use it all the same</source>
        <translation>仍然使用</translation>
    </message>
    <message>
        <source>Use with {tokens} tokens</source>
        <translation>以 {tokens} 词元使用</translation>
    </message>
    <message>
        <source>licence not stated</source>
        <translation>未注明许可证</translation>
    </message>
    <message>
        <source>on the CPU</source>
        <translation>在 CPU 上</translation>
    </message>
    <message>
        <source>on the GPU</source>
        <translation>在 GPU 上</translation>
    </message>
    <message>
        <source>to {host}</source>
        <translation>发送到 {host}</translation>
    </message>
    <message>
        <source>{count} parameters</source>
        <translation>{count} 参数</translation>
    </message>
    <message>
        <source>{done} of {total}</source>
        <translation>{done} / {total}</translation>
    </message>
    <message>
        <source>{hours} h left</source>
        <translation>剩余 {hours} 小时</translation>
    </message>
    <message>
        <source>{minutes} min left</source>
        <translation>剩余 {minutes} 分钟</translation>
    </message>
    <message>
        <source>{missing} are missing. These hold the most: {programs}.</source>
        <translation>还差 {missing}。占用最多的程序：{programs}。</translation>
    </message>
    <message>
        <source>{percent} % are loaded</source>
        <translation>已加载 {percent} %</translation>
    </message>
    <message>
        <source>{seconds} s left</source>
        <translation>剩余 {seconds} 秒</translation>
    </message>
    <message>
        <source>{size} a second</source>
        <translation>每秒 {size}</translation>
    </message>
    <message>
        <source>{size} on the disk</source>
        <translation>磁盘占用 {size}</translation>
    </message>
    <message>
        <source>{tokens} tokens, about {pages} pages</source>
        <translation>{tokens} 个词元，约 {pages} 页</translation>
    </message>
    <message>
        <source>{total}: weights {weights}, context {context}, workspace {workspace}</source>
        <translation>{total}：权重 {weights}，上下文 {context}，工作区 {workspace}</translation>
    </message>
    <message>
        <source>✓ Every byte is right.</source>
        <translation>✓ 每个字节都正确。</translation>
    </message>
    <message>
        <source>✓ It can be read as a whole; it states no checksum to compare with.</source>
        <translation>✓ 可以完整读取；没有可比对的校验和。</translation>
    </message>
    <message>
        <source>Recommended</source>
        <translation>推荐</translation>
    </message>
    <message>
        <source>Not on this machine yet</source>
        <translation>尚未下载到本机</translation>
    </message>
    <message>
        <source>Download it below; it is used as soon as it is here.</source>
        <translation>请在下方下载；完成后立即使用。</translation>
    </message>
    <message>
        <source>For non-commercial research only. Read the licence before you use it at work.</source>
        <translation>仅限非商业研究。用于工作之前请阅读许可证。</translation>
    </message>
    <message>
        <source>on the CPU, not the GPU</source>
        <translation>在 CPU 上，而非 GPU</translation>
    </message>
    <message>
        <source>Bare prompts, tools and log-probabilities are not passed on to servers.</source>
        <translation>纯文本提示词、工具调用和对数概率不会转发给服务器。</translation>
    </message>
    <message>
        <source>What you write here is sent to {host}.</source>
        <translation>您在这里写的内容会发送到 {host}。</translation>
    </message>
    <message>
        <source>Every text that you work on is sent there.</source>
        <translation>您处理的每段文字都会发送到那里。</translation>
    </message>
    <message>
        <source>Another program here, {host}: {model}</source>
        <translation>本机的另一个程序 {host}：{model}</translation>
    </message>
    <message>
        <source>Text is given to another program on this machine, {host}.</source>
        <translation>文字会交给本机的另一个程序：{host}。</translation>
    </message>
    <message>
        <source>Another program on this machine; text is given to it when this is in use</source>
        <translation>本机的另一个程序；使用它时会把文字交给它</translation>
    </message>
    <message>
        <source>only for tests</source>
        <translation>仅供测试</translation>
    </message>
    <message>
        <source>Empty for the server's first</source>
        <translation>留空则用服务器的第一个模型</translation>
    </message>
</context>
</TS>
